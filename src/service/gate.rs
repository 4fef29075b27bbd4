//! One back-off for the whole cluster: while it doesn't answer, one submission tries, and all others wait.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(4);
/// Longer than any call takes.
const ONE_TRY: Duration = Duration::from_secs(15);

/// Whether the cluster answers.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<Option<Outage>>,
}

#[derive(Debug)]
struct Outage {
    pause: Duration,
    until: Instant,
    /// Somebody tries, and hasn't told yet.
    tried: bool,
}

impl Gate {
    /// The cluster gave an answer, whatever it said. Tells whether that ends an outage.
    pub(super) fn answered(&self) -> bool {
        self.with(|state| state.take().is_some())
    }

    /// The cluster gave no answer. The pause grows with each try that comes after the last one.
    pub(super) fn unanswered(&self) {
        let now = Instant::now();
        self.with(|state| {
            let pause = match state {
                Some(Outage { tried: false, until, .. }) if now < *until => return,
                Some(outage) => (outage.pause * 2).min(LONGEST),
                None => FIRST,
            };
            *state = Some(Outage { pause, until: now + pause, tried: false });
        });
    }

    /// How many of `wanted` submissions may try now: all of them, one after a pause, or none. The one tells by
    /// [`Gate::answered`] or [`Gate::unanswered`] what came of it, or there was none: [`Gate::not_tried`].
    pub(super) fn admits(&self, wanted: usize) -> usize {
        let now = Instant::now();
        self.with(|state| match state {
            None => wanted,
            Some(outage) if now < outage.until => 0,
            Some(outage) => {
                *outage = Outage { pause: outage.pause, until: now + ONE_TRY, tried: true };
                wanted.min(1)
            }
        })
    }

    /// There was nothing to try with.
    pub(super) fn not_tried(&self) {
        self.with(|state| {
            if let Some(outage @ Outage { tried: true, .. }) = state {
                *outage = Outage { pause: outage.pause, until: Instant::now(), tried: false };
            }
        });
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
        gate.unanswered();
        let pause = gate.pause().unwrap();
        gate.unanswered();
        assert_eq!(gate.pause(), Some(pause), "those who were under way make it no longer");
        assert_eq!(gate.admits(16), 0);
        tokio::time::advance(pause).await;
        assert_eq!((gate.admits(16), gate.admits(16)), (1, 0));
        gate.not_tried();
        assert_eq!((gate.admits(16), gate.admits(16)), (1, 0), "there was none to try with before");
        gate.unanswered();
        assert_eq!(gate.pause(), Some(pause * 2));
        assert!(gate.answered() && !gate.answered());
        assert_eq!(gate.admits(16), 16);
    }
}
