//! Parses a log, in pieces of any size, into lines that start with a timestamp, and remembers the position up to which lines
//! were returned, so that a broken stream can be resumed in the middle of a line.

use bytes::Bytes;
use chrono::{DateTime, Utc};

use sparkgate_files::LogPosition;

/// A timestamp is shorter than this (`2026-01-02T03:04:05.123456789+00:00`): anything longer is text of a line without one.
const LONGEST_TIME: usize = 40;

/// Selects the parts of a log that a reader requested, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Lines {
    with_times: bool,
    since: Option<DateTime<Utc>>,
    place: Place,
    /// The position at which the last stream broke, until this one has reached it.
    behind: Option<Behind>,
    /// A later stream didn't contain the line at which the one before it broke.
    gap: bool,
    now: Now,
}

/// The position up to which lines were returned: the line with the latest timestamp (stdout and stderr of a container may be
/// slightly out of order), and the lines after it.
#[derive(Debug, Default, Clone)]
struct Place {
    latest: Option<DateTime<Utc>>,
    /// Number of lines with exactly that timestamp.
    of_that_time: usize,
    /// Number of lines after the last of those.
    after: usize,
    /// Bytes of the last line's text.
    bytes: usize,
}

/// The part of a new stream that was returned before and still has to be skipped.
#[derive(Debug)]
struct Behind {
    place: Place,
    /// Number of repeated lines with its latest timestamp.
    seen: usize,
    /// Number of lines still to be skipped after the last of those, once that line was read.
    left: Option<usize>,
}

/// The position within a line.
#[derive(Debug)]
enum Now {
    /// Within its timestamp.
    Time(Vec<u8>),
    /// In its text, of which the first `skip` bytes were returned before.
    Told { skip: usize },
    /// In the text of a skipped line.
    PassedOver,
}

/// What to do with a line that starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    New,
    /// The last line of the stream that broke: it may have been returned in part, or completely.
    ToldInPart,
    /// Before `since`, or already returned.
    NotWanted,
}

impl Default for Now {
    fn default() -> Self {
        Self::Time(Vec::new())
    }
}

impl Lines {
    pub(super) fn new(with_times: bool, since: Option<DateTime<Utc>>) -> Self {
        Self { with_times, since, ..Self::default() }
    }

    /// Continues a log with times that was taken up to a position.
    pub(super) fn after(position: LogPosition) -> Self {
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let LogPosition { latest, of_that_time, after, bytes } = position;
        let place = Place { latest, of_that_time: count(of_that_time), after: count(after), bytes: count(bytes) };
        Self { place, ..Self::new(true, None) }
    }

    /// Returns the position up to which lines were returned.
    pub(super) fn position(&self) -> LogPosition {
        let Place { latest, of_that_time, after, bytes } = self.place;
        LogPosition { latest, of_that_time: of_that_time as u64, after: after as u64, bytes: bytes as u64 }
    }

    /// Returns the time before which the reader wants no lines.
    pub(super) fn since(&self) -> Option<DateTime<Utc>> {
        self.since
    }

    /// Returns whether lines may have been missed.
    pub(super) fn has_gap(&self) -> bool {
        self.gap
    }

    /// Returns the time from which the log has to be read again to resume.
    pub(super) fn told_until(&self) -> Option<DateTime<Utc>> {
        self.place.latest
    }

    /// Starts a new stream after the last one broke. Its first lines may have been returned already.
    pub(super) fn begin_again(&mut self) {
        self.now = Now::default();
        // Without timestamps, lines are counted.
        let left = Some(self.place.after).filter(|_| self.place.latest.is_none());
        self.behind = (left != Some(0)).then(|| Behind { place: self.place.clone(), seen: 0, left });
    }

    /// Parses a piece and returns the part of it that the reader gets.
    pub(super) fn take(&mut self, piece: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(piece.len());
        let mut rest = piece;
        while !rest.is_empty() {
            match &mut self.now {
                Now::Time(time) => {
                    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\n'));
                    let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
                    time.extend_from_slice(part);
                    rest = after;
                    if end.is_some() || time.len() > LONGEST_TIME {
                        let time = std::mem::take(time);
                        rest = self.begin_line(&time, rest, &mut out);
                    }
                }
                Now::Told { skip } => {
                    let end = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
                    let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
                    let skipped = text.len().min(*skip);
                    *skip -= skipped;
                    out.extend_from_slice(&text[skipped..]);
                    self.place.bytes += text.len() - skipped;
                    rest = after;
                    if end.is_some() {
                        self.now = Now::default();
                    }
                }
                Now::PassedOver => {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    rest = end.map_or(&[], |at| &rest[at + 1..]);
                    if end.is_some() {
                        self.now = Now::default();
                    }
                }
            }
        }
        out.into()
    }

    /// Returns what is left at the end of the log: an incomplete last line that might have been a timestamp.
    pub(super) fn finish(&mut self) -> Bytes {
        match std::mem::take(&mut self.now) {
            Now::Time(text) if self.behind.is_none() => text.into(),
            _ => Bytes::new(),
        }
    }

    /// Decides about a line by the text before its first space, and returns the rest of the piece after that.
    fn begin_line<'a>(&mut self, head: &[u8], rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let time = std::str::from_utf8(head).ok().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
        let time = time.filter(|_| rest.first() == Some(&b' ')).map(|time| time.to_utc());
        // Without a timestamp, the whole line is text.
        let text = if time.is_some() { &rest[1..] } else { rest };
        let early = matches!((time, self.since), (Some(time), Some(since)) if time < since);
        self.now = match if early { Whose::NotWanted } else { self.whose(time) } {
            Whose::NotWanted => Now::PassedOver,
            whose => {
                let mut skip = if whose == Whose::New { 0 } else { self.place.bytes };
                if time.is_none() {
                    let new = &head[skip.min(head.len())..];
                    out.extend_from_slice(new);
                    self.place.bytes += new.len();
                    skip = skip.saturating_sub(head.len());
                } else if self.with_times && whose == Whose::New {
                    out.extend_from_slice(head);
                    out.push(b' ');
                }
                Now::Told { skip }
            }
        };
        text
    }

    /// Decides what to do with a line that starts.
    fn whose(&mut self, time: Option<DateTime<Utc>>) -> Whose {
        let Some(behind) = &mut self.behind else {
            self.place.line(time);
            return Whose::New;
        };
        let last = match &mut behind.left {
            Some(left) => {
                *left -= 1;
                *left == 0
            }
            // A later line without that one was written after it: the node has discarded that line.
            None if time > behind.place.latest => {
                (self.behind, self.gap) = (None, true);
                self.place.line(time);
                return Whose::New;
            }
            None if time == behind.place.latest => {
                behind.seen += 1;
                let found = behind.seen == behind.place.of_that_time;
                behind.left = found.then_some(behind.place.after).filter(|left| *left > 0);
                found && behind.left.is_none()
            }
            None => false,
        };
        if !last {
            return Whose::NotWanted;
        }
        self.behind = None;
        Whose::ToldInPart
    }
}

impl Place {
    /// Records that another line is returned.
    fn line(&mut self, time: Option<DateTime<Utc>>) {
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

#[cfg(test)]
mod tests;
