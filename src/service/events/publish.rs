//! Giving new events their numbers, and taking them in: the same loop on every replica.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    service::{Error, Gateway},
    store::{Horizon, NUMBERED_AT_ONCE},
};

/// Changes that are read at once.
const PAGE: u32 = 1000;
/// Between two rounds for somebody here, so that what comes together is told together.
const GAP: Duration = Duration::from_millis(15);
/// How often changes that another replica made are looked for, while somebody here waits for them, and while nobody does.
const AWAITED: Duration = Duration::from_millis(50);
const UNATTENDED: Duration = Duration::from_secs(1);

/// The rounds of this replica.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    begun: bool,
    horizon: Horizon,
}

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Events that got their numbers from us.
    pub numbered: u64,
    /// There are some that have none yet.
    pub more: bool,
}

impl Gateway {
    /// Numbers new events, unless another replica is at it, and takes in what was numbered by whomever if somebody here
    /// follows.
    ///
    /// # Errors
    /// The database; the same call goes on where it was.
    pub async fn publish(&self) -> Result<Published, Error> {
        let mut rounds = self.events.rounds.lock().await;
        let mut found = self.store.numbered(&mut rounds.horizon).await?;
        let mut numbered = 0;
        if found.more {
            numbered = self.store.number_events(&rounds.horizon).await?;
            found = self.store.numbered(&mut rounds.horizon).await?;
        }
        self.notice_loss(found.last);
        // Whoever comes first has what was missed meanwhile read, as far as it is kept in memory at all.
        if self.events.subscribers() > 0 || !rounds.begun {
            rounds.begun = true;
            self.events.skip_to_what_fits(found.last);
            self.take_in_changes(found.last).await?;
        }
        Ok(Published { numbered, more: found.more })
    }

    fn notice_loss(&self, last: i64) {
        let told = self.events.newest().sequence;
        if last < told {
            tracing::error!(
                last,
                told,
                "the database has lost events that were told already: it was brought back from an older copy"
            );
            self.events.went_back(last);
        }
    }

    async fn take_in_changes(&self, last: i64) -> Result<(), Error> {
        let hub = &self.events;
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

    /// Waits until another round is due after this one. While nobody follows here, events may gather: whoever does
    /// elsewhere numbers ours, too.
    pub async fn publication_due(&self, after: Published) {
        if after.numbered == NUMBERED_AT_ONCE {
            return;
        }
        if self.events.subscribers() > 0 {
            sleep(GAP).await;
            if after.more {
                return;
            }
        }
        let period = if self.events.subscribers() > 0 { AWAITED } else { UNATTENDED };
        tokio::select! {
            () = self.events.rung() => {}
            () = sleep(period) => {}
        }
    }
}
