//! Notices that the database has another history than before: a standby that lacked the last commits was promoted, or a backup
//! was restored. What was read or numbered in the lost part never happened, and what happened since is to be done again.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::lost_numbers::LostNumbers;

/// The histories that this process has seen.
#[derive(Debug, Default)]
pub(super) struct Histories {
    /// Their number so far.
    changes: watch::Sender<u64>,
    /// The last number, and the lost numbers.
    seen: Mutex<Option<(i64, Option<LostNumbers>)>>,
}

impl Histories {
    /// Takes in how far events are numbered.
    pub(super) fn see(&self, last: i64, lost: Option<LostNumbers>) {
        let before = self.seen.lock().unwrap_or_else(PoisonError::into_inner).replace((last, lost));
        if before.is_some_and(|(last_before, lost_before)| last < last_before || lost != lost_before) {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    pub(super) fn count(&self) -> u64 {
        *self.changes.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_that_lacks_what_was_seen_is_another_one() {
        let histories = Histories::default();
        let numbers = LostNumbers { after: 95, until: 195 };
        let lost = Some(numbers);
        for (last, lost, changes) in [(90, None, 0), (100, None, 0), (215, lost, 1), (216, lost, 1), (95, lost, 2)] {
            histories.see(last, lost);
            assert_eq!(histories.count(), changes, "{last}");
        }
        assert!([96, 194].iter().all(|number| numbers.contain(*number)));
        assert!(![95, 195].iter().any(|number| numbers.contain(*number)));
    }
}
