//! Keeps the last bytes of a log. A kubelet can only be asked for its last lines.

use std::collections::VecDeque;

use sparkgate_store::LogEnd;

/// A line has a timestamp of 30 characters, a space and a line break: the last `size / 32` lines are at least `size` bytes, if
/// there are so many.
const SHORTEST_LINE: usize = 32;
/// Upper bound of what is read of these lines, as a multiple of `size`: more than lines of the usual length take.
const MOST: usize = 8;
/// The next try asks for this many times fewer lines.
const FEWER: u64 = 16;

/// Buffer of the last `size` bytes of its input.
pub(super) struct End {
    size: usize,
    lines: u64,
    last: VecDeque<u8>,
    /// Total number of bytes and of lines.
    bytes: usize,
    seen: u64,
}

impl End {
    pub(super) fn new(size: usize) -> Self {
        let lines = (size / SHORTEST_LINE).max(1) as u64;
        Self { size, lines, last: VecDeque::new(), bytes: 0, seen: 0 }
    }

    /// Returns how many of the last lines to request.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the maximum number of bytes to request.
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

    /// Returns whether the lines were so long that the limit was reached before the end of the log.
    pub(super) fn came_too_early(&self) -> bool {
        self.bytes >= self.limit() && self.lines > 1
    }

    pub(super) fn with_fewer_lines(self) -> Self {
        Self { lines: (self.lines / FEWER).max(1), ..Self::new(self.size) }
    }

    /// Returns whole lines, unless the last line alone is longer than the buffer.
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
    fn a_short_log_is_archived_whole_and_a_long_one_from_the_start_of_a_line() {
        let log = |text: &str, cut| LogEnd { text: text.as_bytes().to_vec(), cut };
        assert_eq!(end(64, "one\n"), log("one\n", false));
        assert_eq!(end(12, "first\nsecond\nthird"), log("third", true));
        assert_eq!(end(4, "no line ends here"), log("here", true));
        assert_eq!(end(4, "a line\n"), log("ine\n", true), "the last line is too long");
    }

    #[test]
    fn a_log_with_as_many_lines_as_requested_counts_as_cut() {
        let mut end = End::new(SHORTEST_LINE);
        assert_eq!(end.lines(), 1);
        end.take(b"x\n");
        assert!(end.finish().cut);
    }

    #[test]
    fn fewer_lines_are_requested_if_they_are_long() {
        let mut end = End::new(1024);
        end.take(&vec![b'x'; end.limit() - 1]);
        assert!(!end.came_too_early());
        end.take(b"x");
        assert!(end.came_too_early());
        let fewer = end.with_fewer_lines();
        assert_eq!((fewer.lines(), fewer.bytes), (2, 0));
    }
}
