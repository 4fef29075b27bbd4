//! All fields of the objects that are judged, each with the rule that judges it. A field that isn't in this table is refused, so
//! that a field of a later Kubernetes release can't carry past the policy what an older field couldn't.
//!
//! The source is Kubernetes' API reference; a test compares the table with the types of `k8s-openapi`.

mod container;
mod object;
mod pod;
mod volume;

use Kind::{Any, Bool, Object, Text, TextMap};
use serde_json::Value;

/// One field of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) treatment: Treatment,
}

/// What a field's value may be. A value of another kind is refused: the driver's YAML parser would convert it, `"true"` to a
/// boolean for example, and no rule would see the result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Bool,
    Int,
    Ints,
    Text,
    Texts,
    /// A string or a number.
    Scalar,
    /// A Kubernetes quantity, as a string or a number.
    Quantity,
    TextMap,
    QuantityMap,
    Object(&'static [Field]),
    Objects(&'static [Field]),
    /// Any value: nothing in it is judged.
    Any,
}

/// What judges a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Treatment {
    /// Nothing: each value is permitted.
    Free,
    /// The rule of this name.
    Ruled(&'static str),
    /// Its presence is a violation of a rule, for a reason.
    Refused(&'static str, &'static str),
}

const fn free(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, treatment: Treatment::Free }
}

const fn ruled(name: &'static str, kind: Kind, rule: &'static str) -> Field {
    Field { name, kind, treatment: Treatment::Ruled(rule) }
}

const fn refused(name: &'static str, kind: Kind, rule: &'static str, why: &'static str) -> Field {
    Field { name, kind, treatment: Treatment::Refused(rule, why) }
}

/// A kind of object that a driver consists of.
#[derive(Debug)]
pub(crate) struct ObjectType {
    pub(crate) kind: &'static str,
    pub(crate) api_version: &'static str,
    pub(crate) fields: &'static [Field],
}

const META: Field = free("metadata", Object(&object::OBJECT_META));
const STATUS: Field = refused("status", Any, "structure", "the API server sets it");

/// The objects that Spark's feature steps create, and no others.
pub(crate) const OBJECT_TYPES: [ObjectType; 7] = [
    ObjectType {
        kind: "ConfigMap",
        api_version: "v1",
        fields: &[
            free("apiVersion", Text),
            free("binaryData", TextMap),
            free("data", TextMap),
            free("immutable", Bool),
            free("kind", Text),
            META,
        ],
    },
    ObjectType {
        kind: "NetworkPolicy",
        api_version: "networking.k8s.io/v1",
        fields: &[
            free("apiVersion", Text),
            free("kind", Text),
            META,
            free("spec", Object(&object::NETWORK_POLICY_SPEC)),
        ],
    },
    ObjectType {
        kind: "PersistentVolumeClaim",
        api_version: "v1",
        fields: &[
            free("apiVersion", Text),
            free("kind", Text),
            META,
            free("spec", Object(&object::CLAIM_SPEC)),
            STATUS,
        ],
    },
    ObjectType {
        kind: "Pod",
        api_version: "v1",
        fields: &[free("apiVersion", Text), free("kind", Text), META, free("spec", Object(&pod::POD_SPEC)), STATUS],
    },
    ObjectType {
        kind: "PodGroup",
        api_version: "scheduling.volcano.sh/v1beta1",
        fields: &[
            free("apiVersion", Text),
            free("kind", Text),
            META,
            free("spec", Object(&object::POD_GROUP_SPEC)),
            STATUS,
        ],
    },
    ObjectType {
        kind: "Secret",
        api_version: "v1",
        fields: &[
            free("apiVersion", Text),
            free("data", TextMap),
            free("immutable", Bool),
            free("kind", Text),
            META,
            free("stringData", TextMap),
            ruled("type", Text, "structure"),
        ],
    },
    ObjectType {
        kind: "Service",
        api_version: "v1",
        fields: &[
            free("apiVersion", Text),
            free("kind", Text),
            META,
            free("spec", Object(&object::SERVICE_SPEC)),
            STATUS,
        ],
    },
];

/// Returns the type of an object.
pub(crate) fn object_type(kind: &str) -> Option<&'static ObjectType> {
    OBJECT_TYPES.iter().find(|object_type| object_type.kind == kind)
}

/// Returns a field by its name.
pub(crate) fn find(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    fields.binary_search_by_key(&name, |field| field.name).ok().map(|index| &fields[index])
}

impl Kind {
    /// Returns what a value should be, in words, if it isn't that. `null` is the same as an absent field.
    pub(crate) fn mismatch(self, value: &Value) -> Option<&'static str> {
        let is_scalar = |value: &Value| matches!(value, Value::String(_) | Value::Number(_));
        let is_int = |value: &Value| value.is_i64() || value.is_u64();
        let list = |passes: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(passes));
        let map = |passes: &dyn Fn(&Value) -> bool| value.as_object().is_some_and(|map| map.values().all(passes));
        let (fits, expected) = match self {
            Self::Bool => (value.is_boolean(), "true or false"),
            Self::Int => (is_int(value), "a whole number"),
            Self::Ints => (list(|value| value.is_i64() || value.is_u64()), "a list of whole numbers"),
            Self::Text => (value.is_string(), "a string"),
            Self::Texts => (list(Value::is_string), "a list of strings"),
            Self::Scalar | Self::Quantity => (is_scalar(value), "a string or a number"),
            Self::TextMap => (map(&Value::is_string), "a map of strings"),
            Self::QuantityMap => (map(&is_scalar), "a map of quantities"),
            Self::Object(_) => (value.is_object(), "an object"),
            Self::Objects(_) => (list(Value::is_object), "a list of objects"),
            Self::Any => (true, ""),
        };
        (!fits && !value.is_null()).then_some(expected)
    }
}

#[cfg(test)]
mod tests;
