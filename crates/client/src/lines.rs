//! The lines of a followed log, and the position from which the log continues after a broken connection.
//!
//! The gateway is asked for the time of each line. A log that broke is read again from shortly before the last printed line, and
//! what was printed before is skipped: every line is printed once, even if the connection broke in the middle of one. What the
//! node or the archive no longer has can't be printed; such a gap is detected. With `--tail`, of several lines with exactly the
//! same time some may be printed twice.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

/// A timestamp is shorter than this; a longer word is text.
const LONGEST_TIME: usize = 40;
/// stdout and stderr of a container may be out of order by this much.
const DISORDER: TimeDelta = TimeDelta::seconds(1);

/// Selects what to print of a log whose lines begin with timestamps.
#[derive(Debug, Default)]
pub(super) struct Lines {
    with_times: bool,
    printed: Position,
    /// What a new stream repeats of an earlier one, until it has been skipped.
    repeated: Option<Repeated>,
    has_gap: bool,
    now: Now,
}

/// The position after what was printed: the line with the latest time, and the lines after it.
#[derive(Debug, Default)]
struct Position {
    latest: Option<DateTime<Utc>>,
    /// Number of lines with exactly that time.
    of_that_time: usize,
    /// Number of lines after the last of those.
    after: usize,
    /// Bytes of the last line's text.
    bytes: usize,
}

#[derive(Debug)]
struct Repeated {
    /// Number of lines with the latest time so far.
    of_that_time: usize,
    /// Number of lines to skip after the last of those, once it was found.
    left: Option<usize>,
}

/// The position within a line.
#[derive(Debug)]
enum Now {
    /// In the word that may be its timestamp.
    Time(Vec<u8>),
    /// In its text, of which the first `skip` bytes were printed before.
    Text { skip: usize },
    /// In a line that was printed before.
    Skipped,
}

/// A line that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    New,
    /// It is the last line that was printed, in part or as a whole.
    Last,
    Repeated,
}

impl Default for Now {
    fn default() -> Self {
        Self::Time(Vec::new())
    }
}

impl Lines {
    /// Starts at the beginning of a log. The timestamps are printed if `with_times`.
    pub(super) fn new(with_times: bool) -> Self {
        Self { with_times, ..Self::default() }
    }

    /// Returns the latest time of a printed line.
    pub(super) fn latest(&self) -> Option<DateTime<Utc>> {
        self.printed.latest
    }

    /// Starts a new stream of the same log. Returns the `since` to read it from, or `None` to read it as the first time.
    pub(super) fn resume(&mut self) -> Option<String> {
        self.now = Now::default();
        let printed = &self.printed;
        // Without timestamps, lines are counted.
        let left = printed.latest.is_none().then_some(printed.after);
        self.repeated = (left != Some(0)).then_some(Repeated { of_that_time: 0, left });
        let since = printed.latest?.checked_sub_signed(DISORDER)?;
        Some(since.to_rfc3339_opts(SecondsFormat::Nanos, true))
    }

    /// Returns whether the new stream has turned out to lack lines after the last one that was printed. Says so once.
    pub(super) fn has_gap(&mut self) -> bool {
        std::mem::take(&mut self.has_gap)
    }

    /// Returns what to print of a piece.
    pub(super) fn take(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len());
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.take_part(part, &mut out);
            if part.ends_with(b"\n") {
                self.now = Now::default();
            }
        }
        out
    }

    /// Returns what is left to print at the end of the log: an unterminated last line that might have been a timestamp.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        match std::mem::take(&mut self.now) {
            Now::Time(text) if self.repeated.is_none() => text,
            _ => Vec::new(),
        }
    }

    /// Takes a part of one line.
    fn take_part(&mut self, part: &[u8], out: &mut Vec<u8>) {
        if let Now::Time(begun) = &mut self.now {
            begun.extend_from_slice(part);
            let Some((time, length)) = time_of(begun) else { return };
            let line = std::mem::take(begun);
            let kind = self.kind(time);
            if kind == Line::New && self.with_times {
                out.extend_from_slice(&line[..length]);
            }
            self.now = match kind {
                Line::New => Now::Text { skip: 0 },
                Line::Last => Now::Text { skip: self.printed.bytes },
                Line::Repeated => Now::Skipped,
            };
            self.take_text(&line[length..], out);
        } else {
            self.take_text(part, out);
        }
    }

    fn take_text(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if let Now::Text { skip } = &mut self.now {
            let skipped = text.len().min(*skip);
            *skip -= skipped;
            self.printed.bytes += text.len() - skipped;
            out.extend_from_slice(&text[skipped..]);
        }
    }

    fn kind(&mut self, time: Option<DateTime<Utc>>) -> Line {
        let Some(repeated) = &mut self.repeated else {
            self.printed.advance(time);
            return Line::New;
        };
        let latest = self.printed.latest;
        if let Some(left) = &mut repeated.left {
            *left -= 1;
        } else if time > latest {
            (self.repeated, self.has_gap) = (None, true);
            self.printed.advance(time);
            return Line::New;
        } else if time == latest {
            repeated.of_that_time += 1;
            repeated.left = (repeated.of_that_time == self.printed.of_that_time).then_some(self.printed.after);
        }
        if repeated.left == Some(0) {
            self.repeated = None;
            return Line::Last;
        }
        Line::Repeated
    }
}

impl Position {
    /// Advances to a new line.
    fn advance(&mut self, time: Option<DateTime<Utc>>) {
        self.bytes = 0;
        if time > self.latest {
            (self.latest, self.of_that_time, self.after) = (time, 1, 0);
        } else if time.is_some() && time == self.latest && self.after == 0 {
            self.of_that_time += 1;
        } else {
            self.after += 1;
        }
    }
}

/// Returns the timestamp at the beginning of a line, if there is one, and its length with the blank after it. Returns `None`
/// if more of the line is needed to decide.
fn time_of(line: &[u8]) -> Option<(Option<DateTime<Utc>>, usize)> {
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\n'));
    match end {
        Some(end) if line[end] == b' ' => {
            let word = std::str::from_utf8(&line[..end]).ok();
            let time = word.and_then(|word| DateTime::parse_from_rfc3339(word).ok());
            Some(time.map_or((None, 0), |time| (Some(time.to_utc()), end + 1)))
        }
        None if line.len() <= LONGEST_TIME && line[0].is_ascii_digit() => None,
        _ => Some((None, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log whose second and third lines have the same time, and whose fifth has an earlier one than the fourth.
    const LOG: &str = "2026-01-02T03:04:05.1Z one\n2026-01-02T03:04:06.2Z two\n2026-01-02T03:04:06.2Z \n\
                       2026-01-02T03:04:07.5Z 2026 four\n2026-01-02T03:04:07.4Z five\n2026-01-02T03:04:07.5Z six";
    const TEXT: &str = "one\ntwo\n\n2026 four\nfive\nsix";

    /// Returns the log from a time, as the gateway sends it.
    fn since(log: &str, since: Option<&str>) -> String {
        let from = since.map(|since| since.parse::<DateTime<Utc>>().unwrap());
        let time = |line: &str| line.split_once(' ').unwrap().0.parse::<DateTime<Utc>>().unwrap();
        log.split_inclusive('\n').filter(|line| from.is_none_or(|from| time(line) >= from)).collect()
    }

    #[test]
    fn every_line_is_printed_once_wherever_the_connection_breaks() {
        for (with_times, expected) in [(false, TEXT), (true, LOG)] {
            for first in 0..=LOG.len() {
                for second in (0..=LOG.len()).step_by(7) {
                    let mut lines = Lines::new(with_times);
                    let mut printed = lines.take(&LOG.as_bytes()[..first]);
                    for end in [second, usize::MAX] {
                        let log = since(LOG, lines.resume().as_deref());
                        // Pieces of three bytes: their boundaries don't matter.
                        for piece in log.as_bytes()[..end.min(log.len())].chunks(3) {
                            printed.extend(lines.take(piece));
                        }
                    }
                    printed.extend(lines.finish());
                    assert_eq!(String::from_utf8(printed).unwrap(), expected, "broken at {first} and {second}");
                    assert!(!lines.has_gap());
                }
            }
        }
    }

    #[test]
    fn log_that_has_lost_lines_has_a_gap() {
        let mut lines = Lines::new(false);
        lines.take(b"2026-01-02T03:04:05Z one\n");
        lines.resume();
        assert_eq!(lines.take(b"2026-01-02T03:04:09Z nine\n"), b"nine\n");
        assert!(lines.has_gap() && !lines.has_gap());
    }

    #[test]
    fn text_without_timestamps_is_printed_at_once_and_lines_are_counted() {
        let mut lines = Lines::new(false);
        assert_eq!(lines.take(b"a line\nhalf a "), b"a line\nhalf a ");
        lines.resume();
        assert_eq!(lines.take(b"a line\nhalf a line\n12"), b"line\n");
        assert_eq!(lines.finish(), b"12");
    }
}
