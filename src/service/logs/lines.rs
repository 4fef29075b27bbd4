//! Lines that begin with their times, cut from a log that comes in pieces of any size; and the place up to which they
//! were told, so that a stream that broke goes on in the middle of a line.

use bytes::Bytes;
use chrono::{DateTime, Utc};

/// A time is shorter than this (`2026-01-02T03:04:05.123456789+00:00`): what is longer is text of a line without one.
const LONGEST_TIME: usize = 40;

/// What a reader wants of a log, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Lines {
    with_times: bool,
    since: Option<DateTime<Utc>>,
    place: Place,
    /// Where the last stream ended, until this one has come so far.
    behind: Option<Behind>,
    /// Another stream didn't have the line at which the one before it broke.
    gap: bool,
    now: Now,
}

/// What was told: up to the line with the latest time (two outputs of a container may come a little out of order), and
/// the lines after it.
#[derive(Debug, Default, Clone)]
struct Place {
    latest: Option<DateTime<Utc>>,
    /// Lines of exactly that time.
    of_that_time: usize,
    /// Lines after the last of those.
    after: usize,
    /// Bytes of the last line's text.
    bytes: usize,
}

/// What is still to be passed over of what was told already.
#[derive(Debug)]
struct Behind {
    place: Place,
    /// Lines of its latest time that came again.
    seen: usize,
    /// Lines left after the last of those, once it came.
    left: Option<usize>,
}

/// Where in a line.
#[derive(Debug)]
enum Now {
    /// Within its time.
    Time(Vec<u8>),
    /// In its text, of which this many bytes were told before.
    Told { skip: usize },
    /// In the text of a line that isn't told.
    PassedOver,
}

/// A line that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    New,
    /// The last one of the stream that broke: it may have been told in part, or wholly.
    ToldInPart,
    /// Too early, or told already.
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

    /// What the reader wants: no earlier lines.
    pub(super) fn since(&self) -> Option<DateTime<Utc>> {
        self.since
    }

    /// Whether lines may have been missed.
    pub(super) fn has_gap(&self) -> bool {
        self.gap
    }

    /// From when on the log has to be read again to go on.
    pub(super) fn told_until(&self) -> Option<DateTime<Utc>> {
        self.place.latest
    }

    /// The stream broke: another begins, with lines some of which were told already.
    pub(super) fn begin_again(&mut self) {
        self.now = Now::default();
        // Without any time the lines are counted.
        let left = Some(self.place.after).filter(|_| self.place.latest.is_none());
        self.behind = (left != Some(0)).then(|| Behind { place: self.place.clone(), seen: 0, left });
    }

    /// Takes in a piece; answers what of it is to be told.
    pub(super) fn take(&mut self, piece: &[u8]) -> Bytes {
        let mut told = Vec::with_capacity(piece.len());
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
                        rest = self.begin_line(&time, rest, &mut told);
                    }
                }
                Now::Told { skip } => {
                    let end = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
                    let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
                    let skipped = text.len().min(*skip);
                    *skip -= skipped;
                    told.extend_from_slice(&text[skipped..]);
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
        told.into()
    }

    /// What is left when the log is over: a last line that is no more than a time.
    pub(super) fn finish(&mut self) -> Bytes {
        match std::mem::take(&mut self.now) {
            Now::Time(text) if self.behind.is_none() => text.into(),
            _ => Bytes::new(),
        }
    }

    /// Decides about a line by what stands before its text; answers the rest behind that.
    fn begin_line<'a>(&mut self, head: &[u8], rest: &'a [u8], told: &mut Vec<u8>) -> &'a [u8] {
        let time = std::str::from_utf8(head).ok().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
        let time = time.filter(|_| rest.first() == Some(&b' ')).map(|time| time.to_utc());
        // Without a time, all of it is text.
        let text = if time.is_some() { &rest[1..] } else { rest };
        let early = matches!((time, self.since), (Some(time), Some(since)) if time < since);
        self.now = match if early { Whose::NotWanted } else { self.whose(time) } {
            Whose::NotWanted => Now::PassedOver,
            whose => {
                let mut skip = if whose == Whose::New { 0 } else { self.place.bytes };
                if time.is_none() {
                    let new = &head[skip.min(head.len())..];
                    told.extend_from_slice(new);
                    self.place.bytes += new.len();
                    skip = skip.saturating_sub(head.len());
                } else if self.with_times && whose == Whose::New {
                    told.extend_from_slice(head);
                    told.push(b' ');
                }
                Now::Told { skip }
            }
        };
        text
    }

    /// What is to become of the line that begins.
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
            // What comes later without that line having come was written after it: the node has thrown that line away.
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
    /// Another line is told.
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
