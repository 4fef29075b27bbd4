//! JSON Patch (RFC 6902), with limits: `copy` can double a document with every operation.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::super::failure::{Answer, Failure};

const OPERATIONS: usize = 1_000;
/// Maximum number of `copy` and `move` operations in one patch.
const COPIES: usize = 50;
/// Maximum number of values in a patched document.
const VALUES: usize = 1 << 18;
/// Maximum number of parts in a path. A patched document may be nested twice as deep.
const DEPTH: usize = 100;

pub(super) fn parse(body: Value) -> Answer<Patch> {
    let patch: Patch =
        serde_json::from_value(body).map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    let copies = patch.0.iter().filter(|operation| copies(operation)).count();
    if patch.0.len() > OPERATIONS || copies > COPIES {
        let message =
            format!("the patch has more than {OPERATIONS} operations, or more than {COPIES} that copy or move");
        return Err(Failure::too_large(message));
    }
    if patch.0.iter().any(|operation| operation.path().tokens().count() > DEPTH) {
        return Err(Failure::too_large(format!("a path of the patch has more than {DEPTH} parts")));
    }
    Ok(patch)
}

pub(super) fn apply(document: &mut Value, patch: &Patch) -> Answer<()> {
    for operation in &patch.0 {
        json_patch::patch_unsafe(document, std::slice::from_ref(operation))
            .map_err(|_| Failure::unprocessable("the server rejected our request due to an error in our request"))?;
        let mut budget = VALUES;
        if copies(operation) && !fits(document, DEPTH * 2, &mut budget) {
            return Err(Failure::too_large("the patched object is too large or nested too deeply"));
        }
    }
    Ok(())
}

fn copies(operation: &PatchOperation) -> bool {
    matches!(operation, PatchOperation::Copy(_) | PatchOperation::Move(_))
}

fn fits(value: &Value, depth: usize, budget: &mut usize) -> bool {
    let Some(left) = budget.checked_sub(1) else { return false };
    *budget = left;
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| fits(item, depth - 1, budget)),
        Value::Object(map) => depth > 0 && map.values().all(|item| fits(item, depth - 1, budget)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(operations: Value) -> Answer<Value> {
        let mut document = json!({ "data": { "a": "1" } });
        apply(&mut document, &parse(operations)?)?;
        Ok(document)
    }

    #[test]
    fn operations_are_applied_and_a_failed_test_stops_them() {
        let operations = json!([{ "op": "test", "path": "/data/a", "value": "1" }, { "op": "add", "path": "/data/b", "value": "2" }]);
        assert_eq!(patched(operations).unwrap(), json!({ "data": { "a": "1", "b": "2" } }));
        assert!(patched(json!([{ "op": "test", "path": "/data/a", "value": "2" }])).is_err());
        assert!(patched(json!([{ "op": "remove", "path": "/data/zz" }])).is_err());
    }

    #[test]
    fn a_patch_cannot_inflate_a_document() {
        let double = |n| json!({ "op": "copy", "from": "", "path": format!("/data/x{n}") });
        let doubling: Vec<Value> = (0..40).map(double).collect();
        assert!(patched(doubling.into()).is_err());
        let many = vec![json!({ "op": "copy", "from": "/data", "path": "/x" }); COPIES + 1];
        assert!(patched(many.into()).is_err());
    }
}
