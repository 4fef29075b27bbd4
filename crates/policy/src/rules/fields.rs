//! The walk over all fields of an object: unknown fields, values of another kind, and fields that must not be set.

use crate::{
    judgement::Judgement,
    node::Node,
    schema::{self, Field, Kind, Treatment},
};

const RULE: &str = "unclassifiedField";

/// Judges an object and all objects in it by the table of fields.
pub(super) fn judge(judgement: &mut Judgement<'_>, node: &Node<'_>, fields: &'static [Field]) {
    if !node.value.is_object() && !node.value.is_null() {
        judgement.report(RULE, node, "it must be an object");
    }
    for (name, child) in node.entries() {
        if child.value.is_null() {
            continue;
        }
        let Some(field) = schema::find(fields, name) else {
            let message = "the policy doesn't know this field: remove it, or use a Sparkgate that knows it";
            judgement.report(RULE, &child, message);
            continue;
        };
        if let Some(expected) = field.kind.mismatch(child.value) {
            let message = match field.treatment {
                Treatment::Ruled(rule) => format!("it must be {expected}, so that `{rule}` can judge it"),
                _ => format!("it must be {expected}"),
            };
            judgement.report(RULE, &child, message);
            continue;
        }
        match (field.treatment, field.kind) {
            (Treatment::Refused(rule, why), _) if child.is_set() => {
                judgement.report(rule, &child, format!("it must not be set: {why}"));
            }
            (_, Kind::Object(fields)) => judge(judgement, &child, fields),
            (_, Kind::Objects(fields)) => child.items().for_each(|item| judge(judgement, &item, fields)),
            _ => {}
        }
    }
}
