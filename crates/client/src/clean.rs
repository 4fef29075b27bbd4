//! Cleans untrusted text for a terminal: names and messages come from other users, and must not control the terminal.

use std::borrow::Cow;

/// Returns the text as one line: control characters (line breaks, terminal escapes) become blanks or `�`.
pub(super) fn line(text: &str) -> Cow<'_, str> {
    replaced(text, |c| if c.is_whitespace() { ' ' } else { '\u{fffd}' }, |_| false)
}

/// Returns the text cleaned as by [`line()`], but keeps line breaks and tabs.
pub(super) fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |_| '\u{fffd}', |c| matches!(c, '\n' | '\t'))
}

fn replaced(text: &str, by: impl Fn(char) -> char, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let steers = |c: char| (c.is_control() || is_bidi(c)) && !stays(c);
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if steers(c) { by(c) } else { c }).collect())
}

/// Returns whether a character changes the direction of the text that follows.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cleans a text that arrives in pieces, whose boundaries may be within a character.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The beginning of a character.
    begun: Vec<u8>,
    after_cr: bool,
}

impl Pieces {
    /// Returns a piece cleaned as by [`lines()`]. A carriage return, which would overwrite its line, becomes a line break.
    pub(super) fn take(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text += chunk.valid();
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_begun(invalid) {
                self.begun = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push('\u{fffd}');
            }
        }
        let mut broken = String::with_capacity(text.len());
        for c in text.chars() {
            let after_cr = std::mem::replace(&mut self.after_cr, c == '\r');
            match c {
                '\n' if after_cr => {}
                '\r' => broken.push('\n'),
                c => broken.push(c),
            }
        }
        lines(&broken).into_owned()
    }

    /// Returns what is left at the end of the text.
    pub(super) fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.begun).is_empty() { "" } else { "\u{fffd}" }
    }
}

/// Returns whether more bytes may complete the character.
fn is_begun(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(line("a\nb\u{1b}[31mc\u{202e}"), "a b\u{fffd}[31mc\u{fffd}");
        assert_eq!(lines("a\n\tb\u{1b}c\r"), "a\n\tb\u{fffd}c\u{fffd}");
        assert!(matches!(line("Pi für 圆"), Cow::Borrowed(_)));
    }

    #[test]
    fn pieces_are_cleaned_wherever_they_are_cut() {
        let text = "eins für 圆 \u{1b}]0;title\u{7}\r\n50%\r100%\r\n\u{9b}2J\tend".as_bytes();
        let clean = "eins für 圆 \u{fffd}]0;title\u{fffd}\n50%\n100%\n\u{fffd}2J\tend";
        for length in 1..=text.len() {
            let mut pieces = Pieces::default();
            let cleaned: String = text.chunks(length).map(|piece| pieces.take(piece)).collect();
            assert_eq!(cleaned + pieces.finish(), clean, "pieces of {length}");
        }
        let mut pieces = Pieces::default();
        assert_eq!(pieces.take(b"a\xff\xc3b\xe5\x9c"), "a\u{fffd}\u{fffd}b");
        assert_eq!((pieces.finish(), pieces.finish()), ("\u{fffd}", ""));
    }
}
