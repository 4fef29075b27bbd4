//! Texts of jobs and callers as pages show them, times, and amounts.

use std::borrow::Cow;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use maud::{Markup, html};

/// The longest text that a cell or a line of a page shows, in bytes.
pub(super) const LONGEST: usize = 4096;

/// Returns a text in which characters without a shape have one: control characters, and those that reorder or hide the text
/// around them. Line breaks and tabs stay. A long text is cut.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    cut(text, LONGEST)
}

/// Does the same for a text of at most `most` bytes.
pub(super) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let shown = &text[..text.floor_char_boundary(most)];
    let rest = text.len() - shown.len();
    if rest == 0 && !shown.contains(is_hidden) {
        return Cow::Borrowed(shown);
    }
    let mut owned: String = shown.chars().map(shape).collect();
    if rest > 0 {
        owned.push_str(&format!("… ({rest} more bytes)"));
    }
    Cow::Owned(owned)
}

fn is_hidden(c: char) -> bool {
    shape(c) != c
}

fn shape(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        // Unicode's pictures of control characters.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => '\u{fffd}',
        c => c,
    }
}

/// Removes the sequences with which programs colour terminals (ECMA-48: CSI and OSC) from a text.
pub(super) fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, sequence) = rest.split_at(at);
        let length = sequence_length(sequence);
        plain.push_str(before);
        plain.push_str(if length == 0 { "\u{1b}" } else { "" });
        rest = &sequence[length.max(1)..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Returns the length of the sequence at the beginning of a text, which is an escape character; 0 if it begins none.
fn sequence_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |is_part: &dyn Fn(u8) -> bool| bytes.iter().skip(2).take_while(|byte| is_part(**byte)).count() + 2;
    match bytes.get(1) {
        Some(b'[') => {
            let end = ends(&|byte| (0x20..0x40).contains(&byte));
            end + usize::from(bytes.get(end).is_some_and(|last| (0x40..0x7f).contains(last)))
        }
        Some(b']') => {
            let end = ends(&|byte| !matches!(byte, 7 | 0x1b | b'\n'));
            match bytes.get(end..) {
                Some([7, ..]) => end + 1,
                Some([0x1b, b'\\', ..]) => end + 2,
                _ => end,
            }
        }
        _ => 0,
    }
}

/// Shows a moment as the time since then, with the moment itself as its title. Scripts keep the text current.
pub(super) fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let exact = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    html! { time datetime=(exact) title=(exact) data-ago { (duration(now - at)) " ago" } }
}

/// Shows the moment itself. Scripts put the local time of the browser before it.
pub(super) fn moment(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(at.to_rfc3339_opts(SecondsFormat::Millis, true)) data-moment="" { (at.format("%Y-%m-%d %H:%M:%S")) " UTC" } }
}

/// Shows how long something has lasted, up to now if it has no end.
pub(super) fn lasted(from: DateTime<Utc>, to: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Markup {
    let since = to.is_none().then(|| from.to_rfc3339_opts(SecondsFormat::Millis, true));
    html! { span data-since=[since] { (duration(to.unwrap_or(now) - from)) } }
}

/// Returns a time in two units at most, such as `3m 20s`.
pub(super) fn duration(time: TimeDelta) -> String {
    let millis = time.num_milliseconds().max(0);
    let seconds = millis / 1000;
    match seconds {
        0..10 => format!("{}.{}s", seconds, millis % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Returns a time in seconds in two units at most.
pub(super) fn took(seconds: f64) -> String {
    duration(TimeDelta::milliseconds((seconds * 1000.0) as i64))
}

/// Returns an exact decimal number divided by `unit`, with two digits after the point.
pub(super) fn amount(number: &str, unit: f64) -> String {
    // What is no number is shown as it is.
    number.parse::<f64>().map_or_else(|_| number.to_owned(), |number| format!("{:.2}", number / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_without_a_shape_get_one() {
        for (text, expected) in [
            ("plain ä <b>\n\t", "plain ä <b>\n\t"),
            ("a\0b\u{1b}[31m\u{7f}", "a␀b␛[31m␡"),
            ("\u{202e}gpj.exe\u{200b}", "\u{fffd}gpj.exe\u{fffd}"),
        ] {
            assert_eq!(visible(text), expected);
        }
        assert_eq!(cut(&"ä".repeat(10), 5), "ää… (16 more bytes)");
    }

    #[test]
    fn colours_are_removed_from_a_text() {
        for (text, expected) in [
            ("plain", "plain"),
            ("\u{1b}[1;31mred\u{1b}[0m end", "red end"),
            ("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{7}", "link"),
            ("cut \u{1b}[31", "cut "),
            ("next \u{1b}[31\nline", "next \nline"),
            ("alone \u{1b} stays", "alone \u{1b} stays"),
        ] {
            assert_eq!(without_colours(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_time_has_two_units_at_most() {
        for (seconds, expected) in
            [(-5, "0.0s"), (9, "9.0s"), (59, "59s"), (200, "3m 20s"), (7500, "2h 5m"), (100_000, "1d 3h")]
        {
            assert_eq!(duration(TimeDelta::seconds(seconds)), expected);
        }
    }
}
