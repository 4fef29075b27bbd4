//! Limits on stored texts of foreign origin.

use std::borrow::Cow;

/// Maximum length of a stored text in bytes.
const LONGEST: usize = 4096;

/// Returns the part of a text of a container, a kubelet or an API server that is stored: Postgres accepts no NUL, and megabytes
/// would be of no use.
pub fn kept(text: &str) -> Cow<'_, str> {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
