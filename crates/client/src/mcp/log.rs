//! The end of a log, or the lines of it that have a text.

use std::collections::VecDeque;

use super::bounds::{cut, visible};

/// The longest line, in characters.
const LONGEST_LINE: usize = 2000;
/// The most bytes of lines.
const LARGEST: usize = 48 << 10;
/// The most bytes of a log that are searched.
const SEARCHED: usize = 64 << 20;

/// What is kept of a log.
pub(super) struct Excerpt {
    /// The search, in lower case.
    search: Option<String>,
    most: usize,
    lines: VecDeque<(usize, String)>,
    bytes: usize,
    /// The beginning of a line.
    begun: Vec<u8>,
    taken: usize,
    /// The number of lines that were read.
    pub(super) read: usize,
    /// The number of lines that were kept or would have been.
    pub(super) found: usize,
    /// The log is longer than what is searched.
    pub(super) is_cut: bool,
}

impl Excerpt {
    /// Keeps the last `most` lines, or the last ones that have a text, whatever its case.
    pub(super) fn new(search: Option<&str>, most: usize) -> Self {
        let search = search.map(str::to_lowercase);
        Self {
            search,
            most,
            lines: VecDeque::new(),
            bytes: 0,
            begun: Vec::new(),
            taken: 0,
            read: 0,
            found: 0,
            is_cut: false,
        }
    }

    /// Takes a piece of the log. Returns whether more of it is to be read.
    pub(super) fn take(&mut self, piece: &[u8]) -> bool {
        self.taken += piece.len();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            // More of a line than is shown isn't kept.
            let room = (4 * LONGEST_LINE).saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
        self.is_cut = self.taken >= SEARCHED;
        !self.is_cut
    }

    /// Ends a last line without a line break.
    pub(super) fn finish(&mut self) {
        if !self.begun.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.begun);
        self.read += 1;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        if self.search.as_ref().is_some_and(|search| !text.to_lowercase().contains(search)) {
            return;
        }
        self.found += 1;
        let text = cut(&visible(text), LONGEST_LINE);
        self.bytes += text.len() + 1;
        self.lines.push_back((self.read, text));
        while self.lines.len() > self.most || self.bytes > LARGEST {
            let Some((_, first)) = self.lines.pop_front() else { break };
            self.bytes -= first.len() + 1;
        }
    }

    /// Returns how many lines are kept.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns the lines; those of a search with their numbers.
    pub(super) fn text(&self) -> String {
        let with_numbers = self.search.is_some();
        let line = |(number, text): &(usize, String)| {
            if with_numbers { format!("{number}: {text}\n") } else { format!("{text}\n") }
        };
        self.lines.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(log: &str, search: Option<&str>, most: usize) -> Excerpt {
        let mut excerpt = Excerpt::new(search, most);
        assert!(log.as_bytes().chunks(7).all(|piece| excerpt.take(piece)));
        excerpt.finish();
        excerpt
    }

    #[test]
    fn the_last_lines_are_kept() {
        let log: String = (1..=100).map(|number| format!("line {number}\n")).collect();
        let last = excerpt(&log, None, 2);
        assert_eq!((last.text().as_str(), last.read, last.found), ("line 99\nline 100\n", 100, 100));
        let found = excerpt(&log, Some("LINE 9"), 3);
        assert_eq!((found.text().as_str(), found.found), ("97: line 97\n98: line 98\n99: line 99\n", 11));
        assert_eq!(excerpt("no end", None, 5).text(), "no end\n");
        assert_eq!(excerpt("", None, 5).len(), 0);
    }

    #[test]
    fn long_lines_and_long_logs_are_cut() {
        let long = excerpt(&format!("{}end\n", "x".repeat(100_000)), None, 5);
        assert!(long.text().len() < 3 * LONGEST_LINE, "{}", long.text().len());
        let log: String = (0..10_000).map(|number| format!("{number} {}\n", "y".repeat(90))).collect();
        let all = excerpt(&log, None, 10_000);
        assert!(all.text().len() <= LARGEST && all.text().contains("9999 y"), "{}", all.len());
    }
}
