//! Converts the values of a template to Kubernetes' types, with the conversions of Spark's parser (Jackson, as fabric8
//! configures it): users' templates have numbers as labels and quoted ports. A field that Kubernetes doesn't know is an error.

use serde::de::{
    DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor, value::StrDeserializer,
};
use serde_json::Value;

use super::fault::Fault;
use crate::{version::SparkVersion, yaml};

/// Maps of strings, which fabric8 leaves out when they are empty. An empty object of any other name has a meaning.
const MAPS: [&str; 9] = [
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "options",
    "overhead",
    "requests",
    "volumeAttributes",
];

/// Maximum number of entries in a list or a map, far beyond what Kubernetes runs: what a template costs grows with the product of
/// its lists, in the operator's rules too. An empty entry takes two characters, and the volume that is made from it three kilobytes.
const MAX_ITEMS: usize = 1000;
const MAX_CONTAINERS: usize = 100;
/// Maximum number of arguments, which are texts.
const MAX_ARGUMENTS: usize = 10_000;

/// One value under its field's name.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    value: &'a Value,
    name: &'a str,
    /// Whether `0644` is an octal number where a file mode is expected. For Spark 3.5 it is a decimal one.
    octal_modes: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(value: &'a Value) -> Self {
        Self { value, name: "", octal_modes: true }
    }

    /// Returns a reader that converts values as that release does.
    pub(super) fn of(self, version: SparkVersion) -> Self {
        Self { octal_modes: version >= SparkVersion::V4_0, ..self }
    }

    /// Refuses a list or map with more entries than any pod needs.
    fn bounded(self, entries: usize) -> Result<(), Fault> {
        let most = match self.name {
            "containers" | "initContainers" | "ephemeralContainers" => MAX_CONTAINERS,
            "args" | "command" => MAX_ARGUMENTS,
            _ => MAX_ITEMS,
        };
        match entries > most {
            true => Err(Fault::new(format!("{entries} entries are too many; the maximum is {most}"))),
            false => Ok(()),
        }
    }

    fn wanted<T>(self, kind: &str) -> Result<T, Fault> {
        let given = match self.value {
            Value::Null => "null",
            Value::Object(_) => "a map",
            Value::Array(_) => "a list",
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let shown = yaml::shortened(&yaml::text(self.value).unwrap_or_default());
                return Err(Fault::new(format!("expected {kind}, not `{shown}`")));
            }
        };
        Err(Fault::new(format!("expected {kind}, not {given}")))
    }

    /// Returns a single value as a string. As for the API server, null in a list or map stands for an empty string.
    fn text(self) -> Result<String, Fault> {
        match self.value {
            Value::Null => Ok(String::new()),
            value => yaml::text(value).map_or_else(|| self.wanted("a string"), Ok),
        }
    }

    fn boolean(self) -> Result<bool, Fault> {
        let word = match self.value {
            Value::Bool(word) => Some(*word),
            Value::Number(number) if !number.is_f64() => Some(number.as_i64() != Some(0)),
            Value::String(text) => match text.trim() {
                "true" | "True" | "TRUE" => Some(true),
                "false" | "False" | "FALSE" => Some(false),
                _ => None,
            },
            _ => None,
        };
        word.map_or_else(|| self.wanted("true or false"), Ok)
    }

    fn int(self) -> Result<i32, Fault> {
        let number = match self.value {
            Value::Number(number) => number.as_i64().and_then(|number| number.try_into().ok()),
            Value::String(text) if self.octal_modes && matches!(self.name, "mode" | "defaultMode") => octal(text),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        number.map_or_else(|| self.wanted("a 32-bit integer"), Ok)
    }

    fn long(self) -> Result<i64, Fault> {
        let number = match self.value {
            Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.map_or_else(|| self.wanted("an integer"), Ok)
    }
}

fn octal(text: &str) -> Option<i32> {
    let digits = text.strip_prefix("0o").or_else(|| text.strip_prefix('0').filter(|rest| !rest.is_empty()));
    digits.map_or_else(|| text.parse().ok(), |digits| i32::from_str_radix(digits, 8).ok())
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(word) => visitor.visit_bool(*word),
            Value::Number(number) => match number.as_i64() {
                Some(number) => visitor.visit_i64(number),
                None => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Object(_) => self.deserialize_map(visitor),
        }
    }

    /// Treats null and empty values as absent.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            Value::Array(items) if items.is_empty() => visitor.visit_none(),
            Value::Object(entries) if entries.is_empty() && MAPS.contains(&self.name) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        if name != "Quantity" {
            return visitor.visit_newtype_struct(self);
        }
        match yaml::text(self.value).filter(|text| !text.is_empty()) {
            Some(text) => visitor.visit_string(text),
            None => self.wanted("a quantity"),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Value::Object(entries) = self.value else { return self.wanted("a map") };
        match entries.keys().find(|key| !fields.contains(&key.as_str())) {
            Some(key) => Err(Fault::new("Kubernetes knows no such field").within(format!(".{}", yaml::shortened(key)))),
            None => self.deserialize_map(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Object(entries) = self.value else { return self.wanted("a map") };
        self.bounded(entries.len())?;
        visitor.visit_map(Entries { entries: entries.iter(), outer: self, value: None })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Array(items) = self.value else { return self.wanted("a list") };
        self.bounded(items.len())?;
        visitor.visit_seq(Items { items: items.iter(), outer: self, index: 0 })
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_bool(self.boolean()?)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_i32(self.int()?)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_i64(self.long()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_string(self.text()?)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
        ignored_any
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Value>,
    outer: Reader<'a>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(value) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        let element = seed.deserialize(Reader { value, ..self.outer });
        element.map(Some).map_err(|fault| fault.within(format!("[{index}]")))
    }
}

struct Entries<'a> {
    entries: serde_json::map::Iter<'a>,
    outer: Reader<'a>,
    value: Option<(&'a str, &'a Value)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some((key, value));
        let key: StrDeserializer<'de, Fault> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (name, value) = self.value.take().ok_or_else(|| Fault::new("a value without its key"))?;
        seed.deserialize(Reader { value, name, ..self.outer })
            .map_err(|fault| fault.within(format!(".{}", yaml::shortened(name))))
    }
}
