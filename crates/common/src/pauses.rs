//! The pauses between the tries of a call.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Pauses without end: each is twice the one before, up to the longest.
#[derive(Debug)]
pub struct Pauses(ExponentialBackoff);

impl Pauses {
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self(ExponentialBuilder::new().with_min_delay(first).with_max_delay(longest).without_max_times().build())
    }

    /// Returns the next pause.
    pub fn next_pause(&mut self) -> Duration {
        self.0.next().unwrap_or_default()
    }
}

/// The tries of a call that nothing else would repeat, for [`backon::Retryable`]: six, with pauses of five seconds in all.
pub fn a_few_tries() -> ExponentialBuilder {
    let (first, longest) = (Duration::from_millis(200), Duration::from_secs(2));
    ExponentialBuilder::new().with_min_delay(first).with_max_delay(longest).with_max_times(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_the_longest() {
        let mut pauses = Pauses::new(Duration::from_secs(1), Duration::from_secs(5));
        assert_eq!([(); 5].map(|()| pauses.next_pause().as_secs()), [1, 2, 4, 5, 5]);
    }
}
