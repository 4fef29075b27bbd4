//! Timeouts, intervals and page sizes of a watch, and its back-off.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::sleep;
use uuid::Uuid;

/// The longest pause that an API server can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(30);

/// Timeouts, intervals and page sizes of a watch. The defaults suit a large cluster.
#[derive(Debug, Clone)]
pub struct WatchPace {
    /// Pods in one page of a list.
    pub page: u32,
    /// Seconds after which a watch is renewed.
    pub renewal: u32,
    /// A watch that hasn't ended this long after its renewal time counts as dead, and may have been dead all the time. Both
    /// together are the longest time for which a dead connection can stay unnoticed.
    pub grace: Duration,
    /// Interval at which all pods are listed again, which repairs what a watch may have missed.
    pub relist: Duration,
    /// A watch from before a list that has been quiet for this long has reported everything that happened before the list.
    pub settling: Duration,
    /// The first pause before a retry. It doubles up to `longest_pause`; each pause is shortened at random by up to a half.
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

impl WatchPace {
    /// Returns the time until the next list, shortened at random by up to a tenth: a replica watches many namespaces, and doesn't
    /// list all of them at the same moment.
    pub(super) fn until_relist(&self) -> Duration {
        let (chance, ..) = Uuid::new_v4().as_fields();
        self.relist.mul_f64(1.0 - f64::from(chance) / f64::from(u32::MAX) / 10.0)
    }
}

/// The back-off between retries.
#[derive(Debug)]
pub(super) struct Pause {
    builder: ExponentialBuilder,
    pauses: ExponentialBackoff,
}

impl Pause {
    pub(super) fn new(pace: &WatchPace) -> Self {
        // A jitter lengthens each pause at random, up to twice its length.
        let (first, longest) = (pace.pause / 2, pace.longest_pause / 2);
        let builder = ExponentialBuilder::new().with_min_delay(first).with_max_delay(longest);
        let builder = builder.without_max_times().with_jitter();
        Self { builder, pauses: builder.build() }
    }

    /// Restarts the back-off after a success: the next failure counts as the first.
    pub(super) fn reset(&mut self) {
        self.pauses = self.builder.build();
    }

    pub(super) async fn wait(&mut self) {
        self.wait_for(Duration::ZERO).await;
    }

    /// Waits for the next pause of the back-off, or for the one that a server asks for, up to half a minute.
    pub(super) async fn wait_for(&mut self, asked: Duration) {
        sleep(self.pauses.next().unwrap_or_default().max(asked.min(LONGEST_ASKED))).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn lists_are_spread_over_a_minute() {
        let pace = WatchPace::default();
        let times: Vec<_> = (0..100).map(|_| pace.until_relist()).collect();
        let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert!(*first >= Duration::from_secs(540) && *last <= Duration::from_secs(600), "{first:?} {last:?}");
        assert!(*last - *first > Duration::from_secs(20), "{first:?} {last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn back_off_grows_and_restarts_after_a_reset() {
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
        for (asked, waits) in [(3, 3), (3600, 30)] {
            let start = Instant::now();
            pause.wait_for(Duration::from_secs(asked)).await;
            assert_eq!(start.elapsed().as_secs(), waits);
        }
    }
}
