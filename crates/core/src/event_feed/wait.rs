//! Waits for a submission to end or to reach a state. The row is read only when the submission has changed, instead of being
//! polled.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{EventFeed, filter::EventFilter, subscription::Interrupted};
use sparkgate_common::error::Error;
use sparkgate_store::Scoped;
use sparkgate_submission::{State, SubmissionId};
use sparkgate_tenancy::session::Session;

/// The state to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    End,
    /// This state, one that follows it, or an end.
    Reached(State),
}

impl Target {
    fn is_met_by(self, state: State) -> bool {
        state.is_terminal() || matches!(self, Self::Reached(target) if state == target || target.may_become(state))
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    Done,
    /// The timeout has expired, or this process is shutting down.
    NotYet,
    /// No submission has this id.
    Unknown,
}

impl EventFeed {
    /// Waits for at most `limit` until the submission reaches the target. `most` is the maximum number of subscribers,
    /// including this one.
    ///
    /// # Errors
    /// [`Interrupted::TooMany`], [`Interrupted::Limited`], or the database.
    pub async fn wait(
        self: &Arc<Self>,
        caller: &Session,
        id: &SubmissionId,
        target: Target,
        limit: Duration,
        most: usize,
    ) -> Result<Waited, Interrupted> {
        let deadline = Instant::now() + limit;
        let mut filter = EventFilter::of(caller);
        filter.submission = Some(id.clone());
        let readable = self.store.scoped(&caller.readable());
        // Subscribed before the row is read: any later event has a higher number.
        let mut subscription = self.subscribe(caller, filter.clone(), None, most).await?;
        loop {
            match stands(&readable, id, target).await? {
                Waited::NotYet => {}
                waited => return Ok(waited),
            }
            match timeout_at(deadline, subscription.next()).await {
                Ok(Ok(_)) => {}
                // No cursor is needed here: the row has the present state.
                Ok(Err(Interrupted::Expired(_))) => {
                    drop(subscription);
                    subscription = match self.subscribe(caller, filter.clone(), None, most).await {
                        // Another client has taken its place. This one asks again.
                        Err(Interrupted::TooMany(_) | Interrupted::Limited(_)) => {
                            return Ok(stands(&readable, id, target).await?);
                        }
                        subscription => subscription?,
                    };
                }
                Ok(Err(Interrupted::Closing)) | Err(_) => return Ok(stands(&readable, id, target).await?),
                Ok(Err(error)) => return Err(error),
            }
        }
    }
}

async fn stands(readable: &Scoped, id: &SubmissionId, target: Target) -> Result<Waited, Error> {
    let state = readable.find(id).await?.map(|record| record.state);
    Ok(match state {
        None => Waited::Unknown,
        Some(state) if target.is_met_by(state) => Waited::Done,
        Some(_) => Waited::NotYet,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_state_is_met_by_itself_its_successors_and_every_end() {
        let met = |target: Target| State::ALL.into_iter().filter(|state| target.is_met_by(*state)).collect::<Vec<_>>();
        let ends = [State::Finished, State::Failed, State::Killed, State::Error, State::Lost];
        assert_eq!(met(Target::End), ends);
        assert_eq!(met(Target::Reached(State::Running)), [&[State::Running, State::Killing], &ends[..]].concat());
        assert_eq!(met(Target::Reached(State::Finished)), ends);
    }
}
