//! What may be kept of a text that somebody else wrote.

use std::borrow::Cow;

/// Bytes that are kept of it.
const LONGEST: usize = 4096;

/// What may be kept of a text that a container, a kubelet or an API server wrote: Postgres takes no NUL, and nobody reads
/// megabytes.
pub fn kept(text: &str) -> Cow<'_, str> {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
