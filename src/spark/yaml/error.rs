//! What can be wrong with a YAML text.

use granit_parser::ScanError;

use super::{MAX_BYTES, MAX_DEPTH};

/// Why a text was not read. Lines count from one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum YamlError {
    #[error("it has {bytes} bytes; {MAX_BYTES} are the most")]
    TooLarge { bytes: usize },
    #[error("line {line}: lists and maps are nested more than {MAX_DEPTH} deep")]
    TooDeep { line: usize },
    #[error("its values are too many; anchors and aliases, if it has them, are filled in before they are counted")]
    TooHeavy,
    #[error("line {line}: a second document begins; give one only")]
    Several { line: usize },
    #[error("line {line}: the alias stands inside the value that it names")]
    Cycle { line: usize },
    #[error("line {line}: the key `{key}` is there twice")]
    Duplicate { key: String, line: usize },
    #[error("line {line}: a key must be a plain text")]
    Key { line: usize },
    #[error("line {line}: the tag `{tag}` is not possible here")]
    Tag { tag: String, line: usize },
    #[error("it ends in the middle of a value")]
    Unfinished,
    #[error("it is not YAML: line {}, column {}: {}", .0.marker().line(), .0.marker().col() + 1, .0.kind())]
    Syntax(ScanError),
    #[error("it begins with {{ and so is read as JSON, but is not: {0}")]
    Json(serde_json::Error),
}
