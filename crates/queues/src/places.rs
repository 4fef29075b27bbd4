//! All submissions that match a filter and wait are held, released or moved.

use std::collections::{BTreeMap, HashSet};

use super::{
    Queues,
    enter::refused,
    requeue::{NewPlace, destination},
};
use sparkgate_access::{Action, Queue};
use sparkgate_common::error::Error;
use sparkgate_store::{Changed, Filter, Matching, Move, Waits};
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::session::Session;

/// How many submissions one statement changes.
const ROUND: u32 = 500;
/// The most submissions that a request changes or refuses.
pub const MOST_PLACES: u32 = 5000;

/// A change of submissions that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceChange {
    Hold { reason: Option<String> },
    Release,
    Move(NewPlace),
}

/// What became of submissions that match a filter.
#[derive(Debug, Default)]
pub struct PlacesChanged {
    pub changed: Vec<SubmissionId>,
    /// Those that stay as they are, and why.
    pub refused: Vec<(SubmissionId, String)>,
    /// The number after which there may be more.
    pub next: Option<i64>,
}

/// What became of the submissions of one statement.
struct Step {
    changed: Vec<SubmissionId>,
    refused: Vec<(SubmissionId, String)>,
    /// The number of the last one; none if there are no more.
    last: Option<i64>,
}

impl Queues {
    /// Changes the submissions that match a filter and wait, of those that the caller may kill, in the order of their numbers, after this
    /// number: [`MOST_PLACES`] at most. Submissions that are as they would be after the change are left out.
    ///
    /// If the database fails after some have been changed, the answer has those, and where to go on.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may change none in any tenant; [`Error::QueueRefused`] if none of the caller's tenants may use the
    /// queue; the database doesn't answer, or doesn't confirm it.
    pub async fn change_places(
        &self,
        caller: &Session,
        filter: &Filter,
        change: &PlaceChange,
        after: Option<i64>,
    ) -> Result<PlacesChanged, Error> {
        caller.require(Action::KillOwn)?;
        if let PlaceChange::Move(NewPlace { queue: Some(queue), .. }) = change {
            check_known(caller, queue)?;
        }
        let mut all = PlacesChanged { next: after, ..PlacesChanged::default() };
        for _ in 0..MOST_PLACES / ROUND {
            let matching = Matching { filter, after: all.next, limit: ROUND };
            let step = match self.change_next(caller, matching, change).await {
                Ok(step) => step,
                Err(error) if !all.changed.is_empty() => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "places in queues were changed in part");
                    break;
                }
                Err(error) => return Err(error),
            };
            all.changed.extend(step.changed);
            all.refused.extend(step.refused);
            all.next = step.last;
            if all.next.is_none() {
                break;
            }
        }
        if matches!(change, PlaceChange::Release) {
            self.wakeups.work_is_due();
        }
        self.wakeups.state_changed();
        Ok(all)
    }

    async fn change_next(&self, caller: &Session, matching: Matching<'_>, change: &PlaceChange) -> Result<Step, Error> {
        let (by, actor) = (caller.principal().subject(), caller.actor());
        let scoped = self.store.scoped(&caller.killable());
        let Changed { ids, last } = match change {
            PlaceChange::Hold { reason } => scoped.hold_next(matching, (by, actor.as_ref()), reason.as_deref()).await?,
            PlaceChange::Release => scoped.release_next(matching, actor.as_ref()).await?,
            PlaceChange::Move(place) => return self.move_next(caller, matching, place).await,
        };
        Ok(Step { changed: ids, refused: Vec::new(), last })
    }

    async fn move_next(&self, caller: &Session, matching: Matching<'_>, place: &NewPlace) -> Result<Step, Error> {
        let found = self.store.scoped(&caller.killable()).next_to_requeue(matching).await?;
        let last = found.last().map(|one| one.number);
        let mut step = Step { changed: Vec::new(), refused: Vec::new(), last };
        let tenancy = self.access.current();
        // Those that stay in their queue need no room there.
        let mut groups = BTreeMap::<_, (&Queue, Vec<Move<'_>>)>::new();
        for Waits { id, place: from, .. } in &found {
            match self.place(tenancy.access(), from, place) {
                Ok((queue, priority)) if queue.name == from.queue && priority == from.priority => {}
                Ok((queue, priority)) => {
                    let group = groups.entry((&queue.name, queue.name == from.queue));
                    group.or_insert((queue, Vec::new())).1.push(Move { id, from, priority });
                }
                Err(error) => step.refused.push((id.clone(), reason(error)?)),
            }
        }
        for (queue, moves) in groups.into_values() {
            self.move_group(caller, queue, &moves, &mut step).await?;
        }
        Ok(step)
    }

    /// Moves submissions to a queue, either from others or within it.
    async fn move_group(
        &self,
        caller: &Session,
        queue: &Queue,
        moves: &[Move<'_>],
        step: &mut Step,
    ) -> Result<(), Error> {
        let is_same = moves.iter().all(|one| one.from.queue == queue.name);
        if !is_same && let Err(error) = self.check_accepts(queue).await {
            let why = reason(error)?;
            step.refused.extend(moves.iter().map(|one| (one.id.clone(), why.clone())));
            return Ok(());
        }
        let (by, actor) = (caller.principal().subject(), caller.actor());
        let to = destination(queue, is_same);
        let scoped = self.store.scoped(&caller.killable());
        let moved = scoped.requeue((by, actor.as_ref()), moves, &to).await?;
        if moved.is_full {
            let full = Error::BacklogFull { queue: to.queue, most: to.max_queued.unwrap_or_default() }.to_string();
            let done: HashSet<_> = moved.ids.iter().collect();
            let rest = moves.iter().filter(|one| !done.contains(one.id));
            step.refused.extend(rest.map(|one| (one.id.clone(), full.clone())));
        }
        step.changed.extend(moved.ids);
        Ok(())
    }
}

/// Returns why a submission can't move.
///
/// # Errors
/// The error isn't about it.
fn reason(error: Error) -> Result<String, Error> {
    match error {
        Error::QueueRefused(refusal) => Ok(refusal.reason),
        Error::BacklogFull { .. } => Ok(error.to_string()),
        other => Err(other),
    }
}

/// Checks that some tenant of the caller may use a queue.
fn check_known(caller: &Session, name: &str) -> Result<(), Error> {
    let names: Vec<_> = caller.queues().into_iter().map(|queue| queue.name.as_str()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    refused("queue", format!("{name:?} is not a queue of your tenants: they may use {names}"))
}
