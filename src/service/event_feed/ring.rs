//! Ring buffer of the newest changes, without gaps between the oldest and the newest number.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use crate::store::Change;

/// A change that is sent to subscribers.
#[derive(Debug)]
pub struct Told {
    pub sequence: i64,
    pub change: Change,
    text: OnceLock<String>,
}

impl Told {
    pub(super) fn new(sequence: i64, change: Change) -> Arc<Self> {
        Arc::new(Self { sequence, change, text: OnceLock::new() })
    }

    /// Returns the serialized change, which `write` produces once for all subscribers. Every call has to pass the same `write`.
    pub fn text(&self, write: impl FnOnce(&Change) -> String) -> &str {
        self.text.get_or_init(|| write(&self.change))
    }
}

/// What the ring contains after a given number.
#[derive(Debug)]
pub(super) enum Next {
    /// The changes that follow.
    Here(Vec<Arc<Told>>),
    /// The following changes are older than the ring; this is the newest number.
    Older(i64),
    /// No newer change.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Ring {
    told: VecDeque<Arc<Told>>,
    newest: i64,
    capacity: usize,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self { told: VecDeque::new(), newest: 0, capacity }
    }

    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// Empties the ring; the next change is the one after `newest`.
    pub(super) fn reset(&mut self, newest: i64) {
        self.told.clear();
        self.newest = newest;
    }

    /// Appends the next change, and removes the oldest if the ring is full.
    pub(super) fn push(&mut self, told: Arc<Told>) {
        if told.sequence != self.newest + 1 {
            // The changes between them were deleted before this replica read them.
            self.told.clear();
        }
        if self.told.len() == self.capacity {
            self.told.pop_front();
        }
        self.newest = told.sequence;
        self.told.push_back(told);
    }

    /// Returns up to `limit` changes after the number `after`.
    pub(super) fn after(&self, after: i64, limit: usize) -> Next {
        if after >= self.newest {
            return Next::Nothing;
        }
        let oldest = self.newest - i64::try_from(self.told.len()).unwrap_or(i64::MAX) + 1;
        match usize::try_from(after + 1 - oldest) {
            Ok(begin) => Next::Here(self.told.iter().skip(begin).take(limit).cloned().collect()),
            Err(_) => Next::Older(self.newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::store::About;

    fn told(sequence: i64) -> Arc<Told> {
        let of = About { owner: String::new(), namespace: String::new(), labels: Default::default() };
        let change = Change {
            sequence: Some(sequence),
            submission_id: String::new(),
            attempt: 1,
            state: String::new(),
            previous: None,
            reason: None,
            message: None,
            at: DateTime::UNIX_EPOCH,
            of,
        };
        Told::new(sequence, change)
    }

    fn numbers(ring: &Ring, after: i64) -> Option<Vec<i64>> {
        match ring.after(after, 2) {
            Next::Here(told) => Some(told.iter().map(|told| told.sequence).collect()),
            Next::Nothing => Some(Vec::new()),
            Next::Older(_) => None,
        }
    }

    #[test]
    fn the_ring_keeps_the_newest_changes_and_detects_missing_ones() {
        let mut ring = Ring::new(3);
        ring.reset(10);
        assert_eq!((numbers(&ring, 9), numbers(&ring, 10)), (None, Some(vec![])));
        (11..=15).for_each(|sequence| ring.push(told(sequence)));
        assert_eq!(ring.told.len(), 3);
        assert_eq!(numbers(&ring, 11), None);
        assert_eq!(numbers(&ring, 12), Some(vec![13, 14]));
        assert_eq!(numbers(&ring, 14), Some(vec![15]));
        assert_eq!(numbers(&ring, 15), Some(vec![]));
        assert_eq!(numbers(&ring, 99), Some(vec![]));
        ring.push(told(18));
        assert_eq!((numbers(&ring, 14), numbers(&ring, 16), numbers(&ring, 17)), (None, None, Some(vec![18])));
    }
}
