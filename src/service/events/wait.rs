//! Waiting for a submission's end, or for it to get somewhere: its row is read when something has happened to it, never
//! round and round.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{ChangeFilter, Interrupted};
use crate::{
    service::{Error, Gateway},
    submission::{State, SubmissionId},
};

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    End,
    /// This state, one that comes after it, or the end.
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
    /// The time is over, or this process is ending.
    NotYet,
    /// There is no submission of that id.
    Unknown,
}

impl Gateway {
    /// Waits until the submission is where it is wanted, for `limit` at the most, beside less than `most` other
    /// subscribers.
    ///
    /// # Errors
    /// [`Interrupted::TooMany`], or the database.
    pub async fn wait(
        &self,
        id: &SubmissionId,
        target: Target,
        limit: Duration,
        most: usize,
    ) -> Result<Waited, Interrupted> {
        let deadline = Instant::now() + limit;
        let filter = ChangeFilter { submission: Some(id.clone()), ..ChangeFilter::default() };
        // Before the first look at the row: what happens after it has a higher number.
        let mut subscription = self.subscribe(filter, None, most).await?;
        loop {
            match self.stands(id, target).await? {
                Waited::NotYet => {}
                waited => return Ok(waited),
            }
            match timeout_at(deadline, subscription.next()).await {
                Ok(Ok(_)) => {}
                // Its cursor is of use to nobody: the row tells.
                Ok(Err(Interrupted::Expired(_))) => {
                    let filter = ChangeFilter { submission: Some(id.clone()), ..ChangeFilter::default() };
                    subscription = self.subscribe(filter, None, most).await?;
                }
                Ok(Err(Interrupted::Closing)) | Err(_) => return Ok(self.stands(id, target).await?),
                Ok(Err(error)) => return Err(error),
            }
        }
    }

    async fn stands(&self, id: &SubmissionId, target: Target) -> Result<Waited, Error> {
        let record = self.store.find(id).await?;
        Ok(record.map_or(
            Waited::Unknown,
            |record| {
                if target.is_met_by(record.state) { Waited::Done } else { Waited::NotYet }
            },
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_reached_by_itself_what_follows_and_every_end() {
        let met = |target: Target| State::ALL.into_iter().filter(|state| target.is_met_by(*state)).collect::<Vec<_>>();
        let ends = [State::Finished, State::Failed, State::Killed, State::Error, State::Lost];
        assert_eq!(met(Target::End), ends);
        assert_eq!(met(Target::Reached(State::Running)), [&[State::Running, State::Killing], &ends[..]].concat());
        assert_eq!(met(Target::Reached(State::Finished)), ends);
    }
}
