//! Errors in a YAML text.

use granit_parser::ScanError;

use super::{MAX_BYTES, MAX_DEPTH};

/// The reason why a text can't be parsed. Lines count from one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum YamlError {
    #[error("it has {bytes} bytes; the maximum is {MAX_BYTES}")]
    TooLarge { bytes: usize },
    #[error("line {line}: lists and maps are nested more than {MAX_DEPTH} deep")]
    TooDeep { line: usize },
    #[error("it has too many values; they are counted after anchors and aliases, if there are any, are expanded")]
    TooHeavy,
    #[error("line {line}: a second document begins; give one only")]
    Several { line: usize },
    #[error("line {line}: the alias is inside the value that it refers to")]
    Cycle { line: usize },
    #[error("line {line}: the key `{key}` is repeated")]
    Duplicate { key: String, line: usize },
    #[error("line {line}: a key must be a string, a number or a boolean")]
    Key { line: usize },
    #[error("line {line}: the tag `{tag}` is not allowed here")]
    Tag { tag: String, line: usize },
    #[error("it ends in the middle of a value")]
    Unfinished,
    #[error("it is not UTF-8 text: {0}")]
    NotText(std::str::Utf8Error),
    #[error("it is not YAML: line {}, column {}: {}", .0.marker().line(), .0.marker().col() + 1, .0.kind())]
    Syntax(ScanError),
    #[error("it begins with {{ and so is read as JSON, but is not: {0}")]
    Json(serde_json::Error),
}

/// Shortens a name or a value from a client so that it fits into a message.
pub(crate) fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
