//! Inputs.

/// Returns the input as text. Bytes that aren't UTF-8 are refused before any of the parsers for text.
pub fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}
