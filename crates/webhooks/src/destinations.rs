//! The URLs that messages are sent to, each with a circuit breaker that all webhooks of a tenant share which name it: a dead URL gets
//! one message at a time, however many they are.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Turns of one URL at the same time: at first, and once it has taken messages. The number doubles with each turn that ends well.
const FIRST_TURNS: usize = 2;
const MOST_TURNS: usize = 32;
/// Pauses of a URL that takes nothing.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(300);
/// How long a URL is remembered.
const REMEMBERED: Duration = Duration::from_secs(900);

/// A tenant and a URL.
type Name = (String, String);

#[derive(Debug, Clone, Default)]
pub(super) struct Destinations(Arc<Mutex<HashMap<Name, Destination>>>);

#[derive(Debug)]
struct Destination {
    /// Turns that have begun.
    turns: usize,
    most: usize,
    failing: Option<Failing>,
    used: Instant,
}

#[derive(Debug)]
struct Failing {
    since: Instant,
    pause: Duration,
    until: Instant,
}

/// What may be sent to a URL now.
#[derive(Debug)]
pub(super) enum Admission {
    /// A turn.
    Turn(Turn),
    /// Nothing until another turn ends.
    Full,
    /// Nothing for some time, because it takes nothing.
    Failing { since: Instant, pause: Duration },
}

/// A turn of a URL. If it is dropped, the URL took nothing.
#[derive(Debug)]
pub(super) struct Turn {
    destinations: Destinations,
    name: Name,
    /// The last turn failed: one message is tried.
    pub(super) had_failed: bool,
    is_over: bool,
}

impl Destinations {
    /// Begins a turn, if one may begin.
    pub(super) fn admit(&self, tenant: &str, url: &str) -> Admission {
        let (name, now) = ((tenant.to_owned(), url.to_owned()), Instant::now());
        let mut all = self.all();
        let destination =
            all.entry(name.clone()).or_insert(Destination { turns: 0, most: FIRST_TURNS, failing: None, used: now });
        destination.used = now;
        let had_failed = destination.failing.is_some();
        match &destination.failing {
            Some(failing) if destination.turns > 0 || now < failing.until => {
                let pause = failing.until.saturating_duration_since(now).max(failing.pause);
                return Admission::Failing { since: failing.since, pause };
            }
            None if destination.turns >= destination.most => return Admission::Full,
            _ => destination.turns += 1,
        }
        Admission::Turn(Turn { destinations: self.clone(), name, had_failed, is_over: false })
    }

    /// Forgets URLs that aren't used any more.
    pub(super) fn forget_unused(&self) {
        self.all().retain(|_, destination| destination.turns > 0 || destination.used.elapsed() < REMEMBERED);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Name, Destination>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Ends the turn of a URL that took messages, or had none to take.
    pub(super) fn ended_well(mut self) {
        self.end(true);
    }

    fn end(&mut self, takes: bool) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let (mut all, now) = (self.destinations.all(), Instant::now());
        let Some(destination) = all.get_mut(&self.name) else { return };
        destination.turns -= 1;
        if takes {
            destination.failing = None;
            destination.most = (destination.most * 2).min(MOST_TURNS);
            return;
        }
        destination.most = FIRST_TURNS;
        destination.failing = Some(match &destination.failing {
            // A turn that had begun before.
            Some(Failing { since, pause, until }) if now < *until => {
                Failing { since: *since, pause: *pause, until: *until }
            }
            Some(Failing { since, pause, .. }) => {
                let pause = (*pause * 2).min(LAST_PAUSE);
                Failing { since: *since, pause, until: now + pause }
            }
            None => Failing { since: now, pause: FIRST_PAUSE, until: now + FIRST_PAUSE },
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.end(false);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn turn(destinations: &Destinations) -> Turn {
        match destinations.admit("red", "https://one") {
            Admission::Turn(turn) => turn,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_url_gets_one_turn_at_a_time_and_another_one_is_not_delayed() {
        let destinations = Destinations::default();
        let first = [turn(&destinations), turn(&destinations)];
        assert!(matches!(destinations.admit("red", "https://one"), Admission::Full), "nothing is known of it yet");
        drop(first);
        assert!(matches!(destinations.admit("red", "https://one"), Admission::Failing { .. }));
        for other in [("red", "https://two"), ("blue", "https://one")] {
            assert!(matches!(destinations.admit(other.0, other.1), Admission::Turn(_)));
        }
        for pause in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            advance(Duration::from_secs(pause - 1) + Duration::from_millis(900)).await;
            assert!(matches!(destinations.admit("red", "https://one"), Admission::Failing { .. }));
            advance(Duration::from_millis(200)).await;
            let only = turn(&destinations);
            assert!(only.had_failed);
            assert!(matches!(destinations.admit("red", "https://one"), Admission::Failing { .. }));
        }
        advance(LAST_PAUSE).await;
        turn(&destinations).ended_well();
        let many: Vec<_> = (0..4).map(|_| turn(&destinations)).collect();
        assert!(!many[0].had_failed);
        many.into_iter().for_each(Turn::ended_well);
        advance(REMEMBERED).await;
        destinations.forget_unused();
        assert!(destinations.all().is_empty());
    }
}
