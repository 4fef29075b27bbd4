//! Schemas of enumerations, generated from the lists of their values.

use utoipa::openapi::{ObjectBuilder, RefOr, Schema, schema::Type};

/// Returns the schema of a string that is one of `words`.
pub(super) fn word(words: impl Iterator<Item = &'static str>, about: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).description(Some(about)).into()
}
