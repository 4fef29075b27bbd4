//! Seeded random numbers. All decisions of a run come from here.

use std::time::Duration;

use crate::SplitMix64;

#[derive(Debug, Clone)]
pub struct Dice(SplitMix64);

impl Dice {
    /// Creates the generator for one purpose: the draws of one part of a run don't affect another part.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mut random = SplitMix64::new(seed);
        for byte in purpose.bytes() {
            random = SplitMix64::new(random.next() ^ u64::from(byte));
        }
        Self(random)
    }

    /// Returns a number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.next() % limit.max(1)
    }

    /// Returns true once in `n` draws on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns a duration between two numbers of milliseconds.
    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }

    /// Returns one of them; `None` if there are none.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap();
        all.get(at)
    }

    /// Returns one of them, with probabilities in proportion to the weights.
    pub fn weighed<T: Copy>(&mut self, all: &[(u64, T)]) -> T {
        let mut at = self.below(all.iter().map(|(weight, _)| weight).sum());
        for (weight, one) in all {
            if at < *weight {
                return *one;
            }
            at -= weight;
        }
        all[0].1
    }
}
