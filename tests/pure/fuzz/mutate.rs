//! Mutations of a corpus, from a seed: the same seed gives the same inputs.

use sparkgate_testing::SplitMix64;

/// The longest input.
const LONGEST: usize = 8 * 1024;
/// Texts that have a meaning in one of the formats.
const WORDS: [&str; 34] = [
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "true",
    "-1",
    "1e999",
    "0x10",
    "9223372036854775808",
    "\n",
    "\r\n",
    "\t",
    " ",
    "&a",
    "*a",
    "!!str",
    "---\n",
    "|\n",
    "? ",
    "%00",
    "%2e",
    "..",
    "//",
    "é",
    "\u{2028}",
    "${x}",
    "=",
];

/// An endless series of inputs, each made of one of the corpus.
pub(crate) struct Mutations<'a> {
    corpus: &'a [Vec<u8>],
    random: SplitMix64,
}

impl<'a> Mutations<'a> {
    pub(crate) fn new(corpus: &'a [Vec<u8>], seed: u64) -> Self {
        Self { corpus, random: SplitMix64::new(seed) }
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.random.next() % limit.max(1) as u64) as usize
    }

    /// Returns the bounds of a part of an input.
    fn part(&mut self, input: &[u8]) -> (usize, usize) {
        let from = self.below(input.len() + 1);
        (from, from + self.below((input.len() - from).min(64) + 1))
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.part(input);
        match self.below(6) {
            0 => drop(input.drain(from..to)),
            1 => {
                let part = input[from..to].repeat(1 + self.below(3));
                input.splice(to..to, part);
            }
            2 => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(from..from, word.bytes());
            }
            3 => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(from..to, word.bytes());
            }
            4 => {
                let other = &self.corpus[self.below(self.corpus.len())];
                let (other_from, other_to) = self.part(other);
                input.splice(from..to, other[other_from..other_to].iter().copied());
            }
            _ => {
                let byte = self.random.next() as u8;
                if let Some(at) = input.get_mut(from) {
                    *at = byte;
                }
            }
        }
        input.truncate(LONGEST);
    }
}

impl Iterator for Mutations<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut input = self.corpus[self.below(self.corpus.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        Some(input)
    }
}
