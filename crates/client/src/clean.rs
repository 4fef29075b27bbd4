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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(line("a\nb\u{1b}[31mc\u{202e}"), "a b\u{fffd}[31mc\u{fffd}");
        assert_eq!(lines("a\n\tb\u{1b}c\r"), "a\n\tb\u{fffd}c\u{fffd}");
        assert!(matches!(line("Pi für 圆"), Cow::Borrowed(_)));
    }
}
