//! One back-off for the whole cluster: while it doesn't answer, one submission tries, and all others wait.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(4);

/// Whether the cluster answers.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<Option<Outage>>,
}

#[derive(Debug)]
struct Outage {
    pause: Duration,
    until: Instant,
}

impl Gate {
    /// The cluster gave an answer, whatever it said. Tells whether that ends an outage.
    pub(super) fn answered(&self) -> bool {
        self.with(|state| state.take().is_some())
    }

    /// The cluster gave no answer. Answers the pause, which grows with each try that comes after the last pause.
    pub(super) fn unanswered(&self) -> Duration {
        let now = Instant::now();
        self.with(|state| {
            let pause = match state {
                Some(outage) if now < outage.until => return outage.pause,
                Some(outage) => (outage.pause * 2).min(LONGEST),
                None => FIRST,
            };
            *state = Some(Outage { pause, until: now + pause });
            pause
        })
    }

    /// How many of `wanted` submissions may try now: all of them, one after a pause, or none within one.
    pub(super) fn admits(&self, wanted: usize) -> usize {
        self.with(|state| match state {
            None => wanted,
            Some(outage) if Instant::now() < outage.until => 0,
            Some(_) => wanted.min(1),
        })
    }

    /// The pause of an outage that goes on.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.with(|state| state.as_ref().map(|outage| outage.pause))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Option<Outage>) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_felt_by_one_submission_at_a_time() {
        let gate = Gate::default();
        assert_eq!(gate.admits(16), 16);
        let pause = gate.unanswered();
        assert_eq!(gate.unanswered(), pause, "those who were under way make it no longer");
        assert_eq!(gate.admits(16), 0);
        tokio::time::advance(pause).await;
        assert_eq!(gate.admits(16), 1);
        assert_eq!(gate.unanswered(), pause * 2);
        assert!(gate.answered() && !gate.answered());
        assert_eq!(gate.admits(16), 16);
    }
}
