//! Reads a JSON document into a type in one pass and names every part that has the wrong form. Only known fields are decoded.
//!
//! A part with the wrong form is reported and replaced by an empty value, so that the rest is still read. A null in an object
//! with known fields is the same as an absent field; a key that occurs twice is refused everywhere.

use std::{cell::RefCell, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::{self, StringDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::value::RawValue;

use super::{
    problem::{Code, FieldError, MAX_ERRORS, Problem, pointer::escape},
    suggest::suggestion,
};
use sparkgate_spark::rest::{MAX_TEMPLATE, RequestError, first_value};

/// The most entries of one object or array. A value in memory takes many times the bytes of a short text.
const MAX_ENTRIES: usize = 100_000;

/// A string; or a number or a boolean, which becomes the text that was sent, as in Spark's protocol.
#[derive(Debug, Default, Deserialize)]
pub struct Text(pub String);

/// Returns the object that a body is.
///
/// # Errors
/// It is no JSON, something follows it, or it is no object.
pub fn object(body: &[u8]) -> Result<&RawValue, Problem> {
    let document = first_value(body)?;
    // Spark ignores what follows the first value.
    serde_json::from_slice::<&RawValue>(body).map_err(|error| RequestError::Syntax(error.to_string()))?;
    match document.get().starts_with('{') {
        true => Ok(document),
        false => Err(Problem::new(Code::InvalidRequest, "The request is not a JSON object.")),
    }
}

/// Reads the document. The value is complete only if there are no errors. `what` is the document, such as `a batch`.
pub fn read<T: DeserializeOwned>(document: &RawValue, what: &'static str) -> (Option<T>, Vec<FieldError>) {
    let errors = RefCell::default();
    let root = Part { json: document.get(), path: &Path::Root, errors: &errors, is_text: false, what };
    let value = T::deserialize(root).ok();
    (value, errors.into_inner())
}

/// Reads a body with a type that reports its first error only. `what` names the body in the problem, such as `a webhook`.
///
/// # Errors
/// The body has another form.
pub fn parsed<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(Code::InvalidRequest, format!("The body is no request for {what}: {error}.")))
}

/// The way from the document to a part.
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("#"),
            Self::Key(parent, key) => write!(f, "{parent}/{}", escape(key)),
            Self::Item(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

/// A part of the document.
#[derive(Clone, Copy)]
struct Part<'a> {
    json: &'a str,
    path: &'a Path<'a>,
    errors: &'a RefCell<Vec<FieldError>>,
    /// Whether a number or a boolean is a text.
    is_text: bool,
    /// The whole document, in messages.
    what: &'static str,
}

impl<'a> Part<'a> {
    fn report(self, detail: impl Into<String>) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MAX_ERRORS {
            errors.push(FieldError { pointer: Some(self.path.to_string()), detail: detail.into(), parameter: None });
        }
    }

    /// Reports what takes long to describe, unless the maximum is reached: a body has room for a hundred thousand unknown fields.
    fn report_with(self, detail: impl FnOnce() -> String) {
        if self.errors.borrow().len() < MAX_ERRORS {
            self.report(detail());
        }
    }

    fn refuse(self, expected: &str) {
        self.report(format!("must be {expected}, not {}", self.kind()));
    }

    fn kind(self) -> &'static str {
        match self.json.as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    /// Returns the entries of an object or an array that begins with `opening`.
    fn entries(self, opening: char, expected: &str) -> Vec<(String, &'a RawValue)> {
        if !self.json.starts_with(opening) {
            self.refuse(expected);
            return Vec::new();
        }
        match serde_json::from_str(self.json) {
            Ok(Entries { kept, count: 0..=MAX_ENTRIES }) => return kept,
            Ok(Entries { count, .. }) => self.report(format!("has {count} entries; the maximum is {MAX_ENTRIES}")),
            Err(error) => self.report(error.to_string()),
        }
        Vec::new()
    }

    /// Returns the entries of an object, without those that are refused.
    fn members(self, known: Option<&'static [&'static str]>, expected: &str) -> Members<'a> {
        let all = self.entries('{', expected);
        let mut seen = HashSet::new();
        let is_good = |(key, value): &(String, &RawValue)| {
            let path = Path::Key(self.path, key);
            let part = Part { json: value.get(), path: &path, ..self };
            if key.contains('\0') {
                part.report("the key holds a NUL character");
            } else if !seen.insert(key.clone()) {
                part.report("the key occurs more than once");
            } else if let Some(known) = known
                && !known.contains(&key.as_str())
                && value.get() != "null"
            {
                let whose = match self.path {
                    Path::Root => format!("{} has", self.what),
                    Path::Key(..) | Path::Item(..) => "there is".to_owned(),
                };
                part.report_with(|| format!("{whose} no such field{}", suggestion(key, known)));
            } else {
                return known.is_none() || value.get() != "null";
            }
            false
        };
        let good: Vec<_> = all.into_iter().filter(is_good).collect();
        Members { part: self, rest: good.into_iter(), next: None }
    }

    /// Returns the text of a string.
    fn text(self) -> String {
        let text = match self.kind() {
            "a string" => serde_json::from_str(self.json).unwrap_or_else(|error: serde_json::Error| {
                self.report(error.to_string());
                String::new()
            }),
            "a number" | "a boolean" if self.is_text => self.json.to_owned(),
            _ => {
                self.refuse("a string");
                String::new()
            }
        };
        if text.contains('\0') {
            self.report("the text holds a NUL character");
        }
        text
    }

    /// Parses a value of a simple type.
    fn simple<T: std::str::FromStr + Default>(self, expected: &str) -> T {
        self.json.parse().unwrap_or_else(|_| {
            match self.kind() {
                "a number" if self.json.len() <= 32 => self.report(format!("must be {expected}, not {}", self.json)),
                _ => self.refuse(expected),
            }
            T::default()
        })
    }
}

impl<'de> Deserializer<'de> for Part<'_> {
    type Error = value::Error;

    /// Reads a template, whose type says nothing about its form.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let bytes = self.json.len();
        if bytes > MAX_TEMPLATE {
            self.report(format!("the template has {bytes} bytes; the maximum is {MAX_TEMPLATE}"));
            return visitor.visit_unit();
        }
        // In JSON a NUL is always written as this escape. A string that contains these characters literally has an escaped
        // backslash.
        if self.json.replace("\\\\", "").contains("\\u0000") {
            self.report("the template holds a NUL character");
        }
        let value: serde_json::Value = serde_json::from_str(self.json).unwrap_or_else(|error| {
            self.report(error.to_string());
            serde_json::Value::Null
        });
        value.deserialize_any(visitor).map_err(value::Error::custom)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        // A null that is a field was left out before; this one is a value of a map or an item of a list.
        if self.json == "null" { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_bool(self.simple("true or false"))
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_u32(self.simple("a whole number"))
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_u64(self.simple("a whole number"))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.text())
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(Self { is_text: true, ..self })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let rest = self.entries('[', "an array of strings").into_iter().enumerate();
        visitor.visit_seq(Items { part: self, rest })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(self.members(None, "an object whose values are strings"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_map(self.members(Some(known), "an object"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
    }
}

/// The members of an object.
struct Members<'a> {
    part: Part<'a>,
    rest: std::vec::IntoIter<(String, &'a RawValue)>,
    next: Option<(String, &'a RawValue)>,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = value::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        self.next = self.rest.next();
        let Some((key, _)) = &self.next else { return Ok(None) };
        let key: StringDeserializer<Self::Error> = key.clone().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        let (key, value) = self.next.as_ref().ok_or_else(|| value::Error::custom("no entry"))?;
        seed.deserialize(Part { json: value.get(), path: &Path::Key(self.part.path, key), ..self.part })
    }
}

/// The items of an array.
struct Items<'a> {
    part: Part<'a>,
    rest: std::iter::Enumerate<std::vec::IntoIter<(String, &'a RawValue)>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = value::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Self::Error> {
        let Some((index, (_, item))) = self.rest.next() else { return Ok(None) };
        seed.deserialize(Part { json: item.get(), path: &Path::Item(self.part.path, index), ..self.part }).map(Some)
    }
}

/// The first entries of an object, or of an array, whose entries have no keys.
struct Entries<'a> {
    kept: Vec<(String, &'a RawValue)>,
    /// Number of all.
    count: usize,
}

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < MAX_ENTRIES {
            let Some(entry) = map.next_entry()? else { break };
            kept.push(entry);
        }
        let mut count = kept.len();
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Entries { kept, count })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < MAX_ENTRIES {
            let Some(item) = items.next_element()? else { break };
            kept.push((String::new(), item));
        }
        let mut count = kept.len();
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Entries { kept, count })
    }
}
