//! Words of closed lists, described from the lists themselves.

use utoipa::openapi::{ObjectBuilder, RefOr, Schema, schema::Type};

/// A text that is one of these.
pub(super) fn word(words: impl Iterator<Item = &'static str>, about: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).description(Some(about)).into()
}
