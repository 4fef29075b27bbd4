//! JSON objects whose members are unique.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Parses an object. `None` if the bytes are none, or a member occurs twice anywhere in it: readers of such an object may differ
/// in which one they take (RFC 7515, section 4; RFC 8725, section 2.4).
pub(super) fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice::<Unique>(bytes).ok()?.0 {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// A value in which no member occurs twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfUnique).map(Self)
    }
}

struct OfUnique;

impl<'de> Visitor<'de> for OfUnique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value whose members are unique")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((name, Unique(value))) = members.next_entry::<String, _>()? {
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("a member occurs twice"));
            }
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_with_a_member_twice_is_refused() {
        let text = br#"{"a": [1, -1, 1.5, null, true, {"b": "\u0063"}], "b": {}}"#;
        assert_eq!(object(text).map(Value::Object), Some(json!({"a": [1, -1, 1.5, null, true, {"b": "c"}], "b": {}})));
        for text in
            [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"{"x":[{"a":1,"a":2}]}"#, "[]", "1", "{", "{} {}", ""]
        {
            assert_eq!(object(text.as_bytes()), None, "{text}");
        }
        assert_eq!(object(format!("{}1{}", r#"{"a":"#.repeat(1000), "}".repeat(1000)).as_bytes()), None, "too deep");
    }

    proptest! {
        #[test]
        fn an_object_without_repetition_is_that_of_serde_json(text in r#"\{"a":[\[\]\{\}0-9eE.+\-,":a-c ]{0,12}\}"#) {
            if let Some(ours) = object(text.as_bytes()) {
                prop_assert_eq!(Value::Object(ours), serde_json::from_str::<Value>(&text).unwrap());
            }
        }
    }
}
