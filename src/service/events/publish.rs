//! Giving new events their numbers, and taking them in: the same loop on every replica.

use std::time::Duration;

use tokio::time::sleep;

use crate::service::{Error, Gateway};

/// Changes that are read at once.
const PAGE: u32 = 1000;
/// Between two rounds, so that what comes together is told together.
const GAP: Duration = Duration::from_millis(15);
/// How often changes that another replica made are looked for, while somebody here waits for them, and while nobody does.
const AWAITED: Duration = Duration::from_millis(50);
const UNATTENDED: Duration = Duration::from_secs(1);

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Events that got their numbers from us.
    pub numbered: u64,
    /// There are some that have none yet.
    pub more: bool,
}

impl Gateway {
    /// Numbers new events, unless another replica is at it, and takes in what was numbered by whomever.
    ///
    /// # Errors
    /// The database; the same call goes on where it was.
    pub async fn publish(&self) -> Result<Published, Error> {
        let mut begun = self.events.begun.lock().await;
        let mut found = self.store.numbered().await?;
        let mut numbered = 0;
        if found.more {
            numbered = self.store.number_events().await?;
            found = self.store.numbered().await?;
        }
        if !std::mem::replace(&mut *begun, true) {
            self.events.begin(found.last);
        }
        self.take_in_changes(found.last).await?;
        Ok(Published { numbered, more: found.more })
    }

    async fn take_in_changes(&self, last: i64) -> Result<(), Error> {
        let hub = &self.events;
        if last < hub.newest().sequence {
            tracing::error!(
                last,
                told = hub.newest().sequence,
                "the database has lost events that were told already: it was brought back from an older copy"
            );
            hub.went_back(last);
        }
        loop {
            let from = hub.newest().sequence;
            if from >= last {
                return Ok(());
            }
            let page = self.store.new_changes(from, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            hub.take_in(page, is_last.then_some(last));
        }
    }

    /// Waits until another round is due after this one.
    pub async fn publication_due(&self, after: Published) {
        match after {
            Published { numbered: 1.., more: true } => return,
            Published { more: true, .. } => return sleep(GAP).await,
            Published { .. } if self.events.subscribers() > 0 => sleep(GAP).await,
            Published { .. } => {}
        }
        let period = if self.events.subscribers() > 0 { AWAITED } else { UNATTENDED };
        tokio::select! {
            () = self.events.rung() => {}
            () = sleep(period) => {}
        }
    }
}
