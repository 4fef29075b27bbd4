//! Numbers new events and reads them into memory: the same loop runs on every replica.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{EventFeed, ended_spans, hub::Newest};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::{Horizon, NUMBERED_AT_ONCE, Numbered};
use sparkgate_traces as traces;

/// Events that are read in one statement.
const PAGE: u32 = 1000;
/// Pause between two rounds while this replica has subscribers, so that events are sent in batches.
const GAP: Duration = Duration::from_millis(15);
/// Poll intervals for events of other replicas, with and without subscribers here.
const AWAITED: Duration = Duration::from_millis(50);
const UNATTENDED: Duration = Duration::from_secs(1);

/// Pause after a failed round.
const RETRY: Duration = Duration::from_secs(1);

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Events that this round numbered.
    pub numbered: u64,
    /// Some events have no number yet.
    pub more: bool,
}

impl EventFeed {
    /// Runs rounds until `stop`. Unnumbered events are left to another replica or the next process.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        stop.run_until_cancelled(Box::pin(self.rounds())).await;
    }

    async fn rounds(&self) {
        loop {
            match self.publish().await {
                Ok(published) => self.publication_due(published).await,
                Err(error) => {
                    tracing::warn!(retry_in = ?RETRY, "publishing events failed: {}", error_chain(&error));
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Numbers new events, unless another replica is doing so. If this replica has subscribers, also reads the newly numbered
    /// events, from all replicas.
    ///
    /// # Errors
    /// The database fails; the next call continues where this one stopped.
    pub async fn publish(&self) -> Result<Published, Error> {
        let mut rounds = self.hub.rounds.lock().await;
        if !rounds.ids_are_new {
            self.store.move_event_ids().await?;
            rounds.ids_are_new = true;
        }
        let mut found = self.store.numbered(&mut rounds.horizon).await?;
        let mut numbered = 0;
        if found.more || found.is_new_history {
            numbered = match traces::are_on() {
                true => self.number_and_trace(&rounds.horizon).await?,
                false => self.store.number_events(&rounds.horizon).await?,
            };
            found = self.store.numbered(&mut rounds.horizon).await?;
        }
        if self.notice_loss(&found) {
            rounds.horizon = Horizon::default();
            rounds.ids_are_new = false;
        }
        self.hub.set_numbered(found.last);
        // The round for the first subscriber reads the events that were skipped before, as far as they fit into memory.
        if self.hub.subscribers() > 0 || !rounds.begun {
            rounds.begun = true;
            self.hub.skip_to_what_fits(found.last);
            self.take_in_events(found.last).await?;
        }
        Ok(Published { numbered, more: found.more })
    }

    /// Numbers new events, and records the spans of submissions whose ends are among them: each event is numbered once, so their
    /// spans are recorded by one replica.
    async fn number_and_trace(&self, horizon: &Horizon) -> Result<u64, Error> {
        let mut ended = Vec::new();
        let numbered = self.store.number_events_of(horizon, &mut ended).await?;
        if !ended.is_empty() {
            // Subscribers don't wait for it.
            tokio::spawn(ended_spans::record(self.store.clone(), ended));
        }
        Ok(numbered)
    }

    /// Returns whether the database has lost numbers since the last round.
    fn notice_loss(&self, found: &Numbered) -> bool {
        let Numbered { last, lost, .. } = *found;
        let Newest { sequence: sent, lost: known, .. } = self.hub.newest();
        if let Some(lost) = lost
            && Some(lost) != known
        {
            // A process that has just started has sent nothing.
            if sent > 0 {
                tracing::error!(
                    last = lost.after,
                    sent,
                    next = lost.until + 1,
                    "the database has another history: a standby was promoted, or a backup was restored. Numbers of events \
                     continue above all that were sent before"
                );
            }
            self.hub.lose(lost);
            return true;
        }
        let is_behind = last < sent;
        if is_behind {
            tracing::error!(
                last,
                sent,
                "the database has lost events that were sent already: it was restored from an older backup"
            );
            self.hub.went_back(last);
        }
        is_behind
    }

    async fn take_in_events(&self, last: i64) -> Result<(), Error> {
        let hub = &self.hub;
        loop {
            let from = hub.newest().sequence;
            if from >= last {
                return Ok(());
            }
            let page = self.store.new_events(from, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            hub.push_page(page, is_last.then_some(last));
        }
    }

    /// Waits until another round is due. While this replica has no subscribers, events may accumulate: a replica with
    /// subscribers numbers the events of this one, too.
    async fn publication_due(&self, after: Published) {
        if after.numbered == NUMBERED_AT_ONCE {
            return;
        }
        if self.hub.subscribers() > 0 {
            sleep(GAP).await;
            if after.more {
                return;
            }
        }
        let period = if self.hub.subscribers() > 0 { AWAITED } else { UNATTENDED };
        tokio::select! {
            () = self.hub.rung() => {}
            () = sleep(period) => {}
        }
    }
}
