//! How often, how long, how many.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::time::sleep;

/// The numbers of a watch; the defaults suit a large cluster.
#[derive(Debug, Clone)]
pub struct WatchPace {
    /// Pods in one page of a list.
    pub page: u32,
    /// A watch is renewed after this many seconds …
    pub renewal: u32,
    /// … and one that hasn't ended so much later is dead, and was perhaps all the time. Both together are the longest
    /// that a dead connection can stay unnoticed.
    pub grace: Duration,
    /// All pods are listed anew this often, which repairs what a watch may have missed.
    pub relist: Duration,
    /// When a watch from before a list has been quiet for this long, it has told all that happened before the list.
    pub settling: Duration,
    /// What failed is tried again after this, doubling up to the longest, less a random part of up to a half.
    pub pause: Duration,
    pub longest_pause: Duration,
}

impl Default for WatchPace {
    fn default() -> Self {
        Self {
            page: 500,
            renewal: 50,
            grace: Duration::from_secs(5),
            relist: Duration::from_secs(600),
            settling: Duration::from_secs(1),
            pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(5),
        }
    }
}

/// The pause before the next try.
#[derive(Debug)]
pub(super) struct Pause {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Pause {
    pub(super) fn new(pace: &WatchPace) -> Self {
        Self { first: pace.pause, longest: pace.longest_pause, next: pace.pause }
    }

    /// It works again: the next failure is a first one.
    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }

    pub(super) async fn wait(&mut self) {
        // Each RandomState has keys of its own; no other randomness is needed here.
        let random = f64::from(RandomState::new().hash_one(()) as u32) / f64::from(u32::MAX);
        sleep(self.next.mul_f64(1.0 - random / 2.0)).await;
        self.next = (self.next * 2).min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_and_begin_anew() {
        let mut pause = Pause::new(&WatchPace::default());
        let mut waited = Vec::new();
        for round in 0..9 {
            if round == 8 {
                pause.reset();
            }
            let start = Instant::now();
            pause.wait().await;
            waited.push(start.elapsed());
        }
        let between = |index: usize, millis: u64| {
            let most = Duration::from_millis(millis + 1);
            assert!((most / 2..=most).contains(&waited[index]), "{waited:?}");
        };
        between(0, 100);
        between(3, 800);
        between(7, 5000);
        between(8, 100);
    }
}
