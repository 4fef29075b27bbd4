//! Random numbers from a seed: the same seed gives the same history on every machine.

use sparkgate_testing::SplitMix64;

#[derive(Debug, Clone)]
pub(crate) struct Rng(SplitMix64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Returns a number in `0..limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns an index into a list of this length; `None` if it is empty.
    pub(crate) fn place(&mut self, length: usize) -> Option<usize> {
        (length > 0).then(|| (self.next() % length as u64) as usize)
    }

    /// Returns `true` with a probability of `per_mille` thousandths.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.next() % 1000 < per_mille
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.next() % from.len() as u64) as usize]
    }
}
