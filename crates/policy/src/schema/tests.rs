//! Compares the table of fields with the types of `k8s-openapi`. A deserializer that offers each type all of its fields shows
//! which fields it has and what they hold.

use std::{cell::RefCell, collections::BTreeMap};

use k8s_openapi::api::{
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
    networking::v1::NetworkPolicy,
};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor, value::Error},
};

use super::{Field, Kind, OBJECT_TYPES, Treatment, find, object_type};

/// What fields of a type hold, by their paths.
type Shapes = RefCell<BTreeMap<String, &'static str>>;

#[derive(Clone)]
struct Explorer<'a> {
    path: String,
    shapes: &'a Shapes,
}

impl Explorer<'_> {
    fn at(&self, part: &str) -> Self {
        Self { path: format!("{}/{part}", self.path), shapes: self.shapes }
    }

    fn is(&self, shape: &'static str) {
        self.shapes.borrow_mut().entry(self.path.clone()).or_insert(shape);
    }
}

macro_rules! scalars {
    ($($method:ident $visit:ident $value:expr, $shape:literal;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.is($shape);
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Explorer<'_> {
    type Error = Error;

    scalars! {
        deserialize_any visit_i32 1, "scalar";
        deserialize_bool visit_bool true, "bool";
        deserialize_i32 visit_i32 1, "int";
        deserialize_i64 visit_i64 1, "int";
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.is("text");
        // Of the types that are written as strings, times and bytes must be valid.
        visitor.visit_str(if self.path.ends_with("/{}") { "" } else { "2026-01-01T00:00:00Z" })
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.is("list");
        visitor.visit_seq(One(Some(self.at("[]"))))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.is("map");
        visitor.visit_map(Fields { explorer: self, names: &["{}"], next: 0 })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.is("object");
        visitor.visit_map(Fields { explorer: self, names, next: 0 })
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
        ignored_any
    }
}

struct One<'a>(Option<Explorer<'a>>);

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|explorer| seed.deserialize(explorer)).transpose()
    }
}

struct Fields<'a> {
    explorer: Explorer<'a>,
    names: &'static [&'static str],
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        match self.names.get(self.next) {
            Some(name) => seed.deserialize(IntoDeserializer::<Error>::into_deserializer(*name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let name = self.names[self.next];
        self.next += 1;
        let explorer = self.explorer.at(name);
        match (name, explorer.path.as_str()) {
            // The type checks them.
            ("apiVersion" | "kind", path) if path.matches('/').count() == 1 => {
                let value = match (name, self.explorer.path.as_str()) {
                    ("kind", kind) => kind,
                    (_, kind) => object_type(kind).unwrap().api_version,
                };
                explorer.is("text");
                seed.deserialize(IntoDeserializer::<Error>::into_deserializer(value))
            }
            _ => seed.deserialize(explorer),
        }
    }
}

/// Returns what the fields of a type hold, by their paths.
fn explore<T: for<'de> Deserialize<'de>>(kind: &str) -> BTreeMap<String, &'static str> {
    let shapes = Shapes::default();
    T::deserialize(Explorer { path: kind.to_owned(), shapes: &shapes })
        .map_err(|error: Error| de::Error::custom(format!("{kind}: {error}")))
        .unwrap_or_else(|error: Error| panic!("{error}"));
    shapes.into_inner()
}

/// Finds the field of the table at a path. `None` if an ancestor is a field whose contents the table doesn't list.
fn at(fields: &'static [Field], path: &[&str]) -> Result<Option<&'static Field>, String> {
    let (name, rest) = path.split_first().unwrap();
    let field = find(fields, name).ok_or_else(|| format!("`{name}` is missing"))?;
    let rest: Vec<&str> = rest.iter().copied().filter(|part| *part != "[]").collect();
    match field.kind {
        _ if rest.is_empty() => Ok(Some(field)),
        Kind::Object(fields) | Kind::Objects(fields) => at(fields, &rest),
        _ => Ok(None),
    }
}

/// Returns whether a kind of the table is what the type holds.
fn fits(kind: Kind, shape: &str) -> bool {
    match kind {
        Kind::Bool => shape == "bool",
        Kind::Int => shape == "int",
        Kind::Text => shape == "text",
        Kind::Quantity => shape == "text" || shape == "scalar",
        Kind::Scalar => shape == "scalar",
        Kind::Ints | Kind::Texts | Kind::Objects(_) => shape == "list",
        Kind::TextMap | Kind::QuantityMap => shape == "map",
        Kind::Object(_) => shape == "object",
        Kind::Any => true,
    }
}

fn compare<T: for<'de> Deserialize<'de>>(kind: &str) {
    let fields = object_type(kind).unwrap().fields;
    let mut faults = Vec::new();
    let shapes = explore::<T>(kind);
    assert!(shapes.len() > 5);
    for (path, shape) in shapes {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        if parts.is_empty() || matches!(parts.last(), Some(&"[]" | &"{}")) || parts[0] == "status" {
            continue;
        }
        match at(fields, &parts) {
            Err(fault) => faults.push(format!("{path}: {fault}")),
            Ok(Some(field)) if !fits(field.kind, shape) => {
                faults.push(format!("{path}: {:?}, not {shape}", field.kind))
            }
            Ok(_) => {}
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_field_of_kubernetes_has_a_row() {
    compare::<Pod>("Pod");
    compare::<Service>("Service");
    compare::<PersistentVolumeClaim>("PersistentVolumeClaim");
    compare::<NetworkPolicy>("NetworkPolicy");
    compare::<ConfigMap>("ConfigMap");
    compare::<Secret>("Secret");
}

#[test]
fn a_field_that_the_table_lacks_is_noticed() {
    let fields = object_type("Service").unwrap().fields;
    assert!(at(fields, &["spec", "newField"]).is_err());
    assert!(at(fields, &["spec", "ports", "[]", "nodePort"]).unwrap().is_some());
}

/// Calls a function for each list of fields in the table.
fn each_list(fields: &'static [Field], visit: &mut impl FnMut(&'static [Field])) {
    visit(fields);
    for field in fields {
        if let Kind::Object(inner) | Kind::Objects(inner) = field.kind {
            each_list(inner, visit);
        }
    }
}

#[test]
fn the_fields_are_sorted_by_name() {
    for object_type in &OBJECT_TYPES {
        each_list(object_type.fields, &mut |fields| {
            assert!(fields.windows(2).all(|pair| pair[0].name < pair[1].name), "{fields:#?}");
        });
    }
}

#[test]
fn each_rule_of_the_table_is_documented() {
    let page = include_str!("../../../../docs/operate/policy.md");
    for object_type in &OBJECT_TYPES {
        each_list(object_type.fields, &mut |fields| {
            for field in fields {
                if let Treatment::Ruled(rule) | Treatment::Refused(rule, _) = field.treatment {
                    assert!(page.contains(&format!("`{rule}`")), "docs/operate/policy.md lacks `{rule}`");
                }
            }
        });
    }
}
