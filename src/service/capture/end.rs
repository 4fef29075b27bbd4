//! The last bytes of a log, of which a kubelet can only be asked for the last lines.

use std::collections::VecDeque;

use crate::store::LogEnd;

/// A line has a time of 30 characters, a space and an end: the last `size / 32` of them are at least `size` bytes, if
/// there are so many.
const SHORTEST_LINE: usize = 32;
/// What of these lines is read at most, in `size`s: more than lines of the usual length take.
const MOST: usize = 8;
/// There are so many times fewer lines in the next try.
const FEWER: u64 = 16;

/// The last `size` bytes of what it is given.
pub(super) struct End {
    size: usize,
    lines: u64,
    last: VecDeque<u8>,
    /// Bytes and lines of all.
    bytes: usize,
    seen: u64,
}

impl End {
    pub(super) fn new(size: usize) -> Self {
        let lines = (size / SHORTEST_LINE).max(1) as u64;
        Self { size, lines, last: VecDeque::new(), bytes: 0, seen: 0 }
    }

    /// How many of the last lines to ask for.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// How many bytes of them.
    pub(super) fn limit(&self) -> usize {
        self.size * MOST
    }

    pub(super) fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        self.seen += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        let piece = &piece[piece.len().saturating_sub(self.size)..];
        let surplus = (self.last.len() + piece.len()).saturating_sub(self.size);
        self.last.drain(..surplus);
        self.last.extend(piece);
    }

    /// The lines were so long that the limit came before the end.
    pub(super) fn came_too_early(&self) -> bool {
        self.bytes >= self.limit() && self.lines > 1
    }

    pub(super) fn with_fewer_lines(self) -> Self {
        Self { lines: (self.lines / FEWER).max(1), ..Self::new(self.size) }
    }

    /// Whole lines, unless the last line alone is longer than all that is kept.
    pub(super) fn finish(self) -> LogEnd {
        let trimmed = self.bytes > self.last.len();
        let mut text: Vec<u8> = self.last.into();
        if trimmed {
            let first_line = text.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            text.drain(..first_line.filter(|at| *at < text.len()).unwrap_or_default());
        }
        LogEnd { text, cut: trimmed || self.seen >= self.lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(size: usize, text: &str) -> LogEnd {
        let mut end = End::new(size);
        for piece in text.as_bytes().chunks(7) {
            end.take(piece);
        }
        end.finish()
    }

    #[test]
    fn a_short_log_is_kept_whole_and_a_long_one_from_a_lines_beginning() {
        let log = |text: &str, cut| LogEnd { text: text.as_bytes().to_vec(), cut };
        assert_eq!(end(64, "one\n"), log("one\n", false));
        assert_eq!(end(12, "first\nsecond\nthird"), log("third", true));
        assert_eq!(end(4, "no line ends here"), log("here", true));
        assert_eq!(end(4, "a line\n"), log("ine\n", true), "the last line is too long");
    }

    #[test]
    fn as_many_lines_as_were_asked_for_are_not_all() {
        let mut end = End::new(SHORTEST_LINE);
        assert_eq!(end.lines(), 1);
        end.take(b"x\n");
        assert!(end.finish().cut);
    }

    #[test]
    fn long_lines_are_asked_for_again_fewer_at_a_time() {
        let mut end = End::new(1024);
        end.take(&vec![b'x'; end.limit() - 1]);
        assert!(!end.came_too_early());
        end.take(b"x");
        assert!(end.came_too_early());
        let fewer = end.with_fewer_lines();
        assert_eq!((fewer.lines(), fewer.bytes), (2, 0));
    }
}
