//! Archived logs of deleted pods.

use bytes::Bytes;

use super::lines::Lines;
use sparkgate_core::witness::Archived;
use sparkgate_store::{KeptLog, LogEnd};
use sparkgate_submission::{cause, last_own_line, own_end};

/// How much of the end of a log is searched for the cause of a failure.
const CAUSE_LINES: u64 = 5000;
/// Limits of the log tail that explains a failure.
const TAIL_LINES: u64 = 40;
const TAIL_BYTES: usize = 4096;

/// Reads an archive. Its tail has at most 40 lines and 4 KiB.
pub(super) fn archived(kept: KeptLog) -> Archived {
    let end = kept.log.as_ref().map(end_of).unwrap_or_default();
    let tail = Some(tail(&end)).filter(|tail| !tail.is_empty());
    Archived { events: kept.events, tail, cause: cause(&end) }
}

/// Returns what ended a driver, if the end of its log tells: its exception, or else, if it `exited` by itself, the last line that it
/// wrote, as a sentence.
pub(super) fn cause_in(log: &LogEnd, exited: bool) -> Option<String> {
    let end = end_of(log);
    let last_line = || last_own_line(&end).map(|line| format!("the last line of its output is \"{line}\""));
    cause(&end).or_else(|| last_line().filter(|_| exited))
}

/// Returns the end of a log, without times.
fn end_of(log: &LogEnd) -> String {
    let text = whole(&mut Lines::default(), last_lines(&log.text, CAUSE_LINES));
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the end of what the application wrote, from its exception on; that of the whole log, if it wrote nothing.
fn tail(end: &str) -> String {
    let own = own_end(end);
    let text = String::from_utf8_lossy(last_lines(own.as_bytes(), TAIL_LINES));
    let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES));
    text[from..].to_owned()
}

/// Converts a complete text to what the reader requested.
pub(super) fn whole(lines: &mut Lines, text: &[u8]) -> Bytes {
    let piece = lines.take(text);
    let rest = lines.finish();
    if rest.is_empty() { piece } else { [piece, rest].concat().into() }
}

/// Returns the last `count` lines; an unterminated last line counts.
pub(super) fn last_lines(text: &[u8], count: u64) -> &[u8] {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 {
        return &[];
    }
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let before = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').nth(count - 1);
    &text[before.map_or(0, |(at, _)| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_counts_from_the_end() {
        for (count, last) in [(0, ""), (1, "c\n"), (2, "\nc\n"), (3, "a\n\nc\n"), (9, "a\n\nc\n")] {
            assert_eq!(last_lines(b"a\n\nc\n", count), last.as_bytes(), "{count}");
        }
        assert_eq!(last_lines(b"a\nb", 1), b"b");
        assert_eq!(last_lines(b"", 3), b"");
    }

    #[test]
    fn the_log_tail_is_limited_in_lines_and_in_bytes() {
        let line = |text: &str| format!("2026-01-02T03:04:05.000000000Z {text}\n");
        let many: String = (0..100).map(|n| line(&n.to_string())).collect();
        let log = |text: String| LogEnd { text: text.into_bytes(), cut: true };
        let last = tail(&end_of(&log(many)));
        assert_eq!((last.lines().count(), last.lines().next()), (40, Some("60")));
        assert_eq!(tail(&end_of(&log(line(&"ä".repeat(10_000))))).len(), TAIL_BYTES - 1);
    }
}
