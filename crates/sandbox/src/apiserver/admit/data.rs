//! The rules of `ConfigMap` and `Secret`.

use serde_json::Value;

use super::super::failure::Cause;
use super::names::check_data_key;

/// Maximum number of bytes of all values of one object together.
const DATA_BYTES: usize = 1 << 20;

pub(super) fn check(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut bytes = 0;
    for part in ["data", "binaryData"] {
        for (key, value) in object[part].as_object().into_iter().flatten() {
            causes.extend(check_data_key(&format!("{part}[{key}]"), key));
            bytes += value.as_str().unwrap_or_default().len();
        }
    }
    if bytes > DATA_BYTES {
        causes.push(Cause::too_long("data", DATA_BYTES));
    }
    causes
}

/// Refuses changes of the data of an object that is marked `immutable`.
pub(super) fn check_change(old: &Value, new: &Value) -> Vec<Cause> {
    const WORDS: &str = "field is immutable when `immutable` is set";
    if old["immutable"] != true {
        return Vec::new();
    }
    let mut causes = Vec::new();
    if new["immutable"] != true {
        causes.push(Cause::forbidden("immutable", WORDS));
    }
    for part in ["data", "binaryData"] {
        if old[part] != new[part] {
            causes.push(Cause::forbidden(part, WORDS));
        }
    }
    causes
}
