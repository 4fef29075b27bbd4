//! What was seen of submissions whose rows can't be read or written just now: others hold them, or something is wrong with them.
//! Each has a task that goes on trying, so that the watch goes on with all others.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{Error, Gateway, error::chain};
use crate::{
    store::Live,
    submission::{Observation, SubmissionId},
};

/// Submissions of one scope. When there are more (a whole table is locked), the watch waits.
const MOST: usize = 256;
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Tries of what can't be read or written at all: about ten minutes, until a list shows it again.
const TRIES: u32 = 60;
/// After a row was found locked, others are looked at before they are waited for.
const WARY: Duration = Duration::from_secs(10);

/// What is set aside of each watched scope.
#[derive(Debug, Default)]
pub struct SetAside {
    scopes: Mutex<HashMap<Option<String>, Scope>>,
    wary: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Scope {
    /// In the order in which it was seen.
    waiting: HashMap<SubmissionId, VecDeque<Sight>>,
    tasks: JoinSet<()>,
}

/// What the watch has to say of a submission.
#[derive(Debug, Clone)]
pub(super) enum Sight {
    Pod(Box<Observation>),
    /// Its pod isn't in a full list.
    Missed(Box<Live>),
}

/// As long as a watch of a scope lasts.
#[derive(Debug)]
pub struct Begun<'a> {
    set_aside: &'a SetAside,
    namespace: Option<String>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.set_aside.scopes().remove(&self.namespace);
    }
}

impl SetAside {
    /// A watch of this scope begins with nothing set aside, and leaves nothing when it ends: the next one is shown it again.
    #[must_use = "the scope is forgotten when this is dropped"]
    pub fn begin(&self, namespace: Option<&str>) -> Begun<'_> {
        let begun = Begun { set_aside: self, namespace: namespace.map(str::to_owned) };
        self.scopes().insert(begun.namespace.clone(), Scope::default());
        begun
    }

    /// Whether nothing of this scope is set aside.
    pub(super) fn is_empty(&self, namespace: Option<&str>) -> bool {
        self.scopes().get(&namespace.map(str::to_owned)).is_none_or(|scope| scope.waiting.is_empty())
    }

    /// Whether more may be set aside.
    pub(super) fn has_room(&self, namespace: Option<&str>) -> bool {
        self.scopes().get(&namespace.map(str::to_owned)).is_some_and(|scope| scope.waiting.len() < MOST)
    }

    /// Puts what was seen behind what is set aside of the same submission; answers it if there is nothing.
    pub(super) fn behind(&self, namespace: Option<&str>, id: &SubmissionId, seen: Vec<Sight>) -> Option<Vec<Sight>> {
        let mut scopes = self.scopes();
        let waiting = scopes.get_mut(&namespace.map(str::to_owned)).and_then(|scope| scope.waiting.get_mut(id));
        let Some(waiting) = waiting else { return Some(seen) };
        waiting.extend(seen);
        None
    }

    /// A row was found locked.
    pub(super) fn be_wary(&self) {
        *self.wary.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + WARY);
    }

    /// Whether a row was found locked a short while ago.
    pub(super) fn is_wary(&self) -> bool {
        let until = *self.wary.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// The first thing that is set aside of a submission; without one, nothing is set aside of it any more.
    fn first(&self, namespace: Option<&str>, id: &SubmissionId) -> Option<Sight> {
        let mut scopes = self.scopes();
        let waiting = &mut scopes.get_mut(&namespace.map(str::to_owned))?.waiting;
        let first = waiting.get(id).and_then(VecDeque::front).cloned();
        if first.is_none() {
            waiting.remove(id);
        }
        first
    }

    fn taken(&self, namespace: Option<&str>, id: &SubmissionId) {
        let mut scopes = self.scopes();
        let waiting = scopes.get_mut(&namespace.map(str::to_owned)).and_then(|scope| scope.waiting.get_mut(id));
        waiting.map(VecDeque::pop_front);
    }

    /// Nothing that holds the lock can leave a scope half changed.
    fn scopes(&self) -> MutexGuard<'_, HashMap<Option<String>, Scope>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Sets aside what was seen of a submission, in its order, until it is taken. `false` if too much is set aside already, or
    /// no watch of this scope runs.
    pub(super) fn set_aside(&self, namespace: Option<&str>, id: &SubmissionId, seen: &[Sight], why: &Error) -> bool {
        let scope_name = namespace.map(str::to_owned);
        let mut scopes = self.set_aside.scopes();
        let Some(scope) = scopes.get_mut(&scope_name) else { return false };
        if scope.waiting.len() >= MOST {
            return false;
        }
        tracing::warn!(submission = %id, "what was seen of its pod is set aside: {}", chain(why));
        scope.waiting.entry(id.clone()).or_default().extend(seen.iter().cloned());
        while scope.tasks.try_join_next().is_some() {}
        let (gateway, id) = (self.clone(), id.clone());
        scope.tasks.spawn(async move {
            gateway.take_what_is_set_aside(scope_name.as_deref(), &id).await;
        });
        true
    }

    async fn take_what_is_set_aside(&self, namespace: Option<&str>, id: &SubmissionId) {
        while let Some(sight) = self.set_aside.first(namespace, id) {
            self.until_taken_at_last(id, &sight).await;
            self.set_aside.taken(namespace, id);
        }
        tracing::info!(submission = %id, "nothing is set aside of it any more");
    }

    async fn until_taken_at_last(&self, id: &SubmissionId, sight: &Sight) {
        let (mut pause, mut tries) = (PAUSE, 0);
        loop {
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            // Waiting for the row would hold one of few connections.
            if self.unlocked(&[id]).await.is_ok_and(|unlocked| unlocked.is_empty()) {
                continue;
            }
            let Err(error) = self.take(sight).await else { return };
            if !error.is_contention() {
                tries += 1;
            }
            if tries >= TRIES {
                return tracing::error!(submission = %id, "left to the next list: {}", chain(&error));
            }
            tracing::debug!(submission = %id, retry_in = ?pause, "{}", chain(&error));
        }
    }

    /// Returns the submissions whose rows no other transaction has locked, and those that have no row.
    pub(super) async fn unlocked(&self, ids: &[&SubmissionId]) -> Result<HashSet<SubmissionId>, Error> {
        let locked = self.store.locked(ids).await?;
        Ok(ids.iter().filter(|id| !locked.contains(**id)).map(|id| (*id).clone()).collect())
    }
}
