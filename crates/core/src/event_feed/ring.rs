//! Ring buffer of the newest events, without gaps between the oldest and the newest number.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use sparkgate_store::Event;

/// An event that is sent to subscribers.
#[derive(Debug)]
pub struct FeedEvent {
    pub sequence: i64,
    pub event: Event,
    text: OnceLock<String>,
}

impl FeedEvent {
    pub(super) fn new(sequence: i64, event: Event) -> Arc<Self> {
        Arc::new(Self { sequence, event, text: OnceLock::new() })
    }

    /// Returns the serialized event, which `write` produces once for all subscribers. Every call has to pass the same `write`.
    pub fn text(&self, write: impl FnOnce(&Event) -> String) -> &str {
        self.text.get_or_init(|| write(&self.event))
    }
}

/// What the ring contains after a given number.
#[derive(Debug)]
pub(super) enum Next {
    /// The events that follow.
    Here(Vec<Arc<FeedEvent>>),
    /// The following events are older than the ring; this is the newest number.
    Older(i64),
    /// No newer event.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Arc<FeedEvent>>,
    newest: i64,
    capacity: usize,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self { events: VecDeque::new(), newest: 0, capacity }
    }

    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// Empties the ring; the next event is the one after `newest`.
    pub(super) fn reset(&mut self, newest: i64) {
        self.events.clear();
        self.newest = newest;
    }

    /// Appends the next event, and removes the oldest if the ring is full.
    pub(super) fn push(&mut self, event: Arc<FeedEvent>) {
        if event.sequence != self.newest + 1 {
            // The events between them were deleted before this replica read them.
            self.events.clear();
        }
        if self.events.len() == self.capacity {
            self.events.pop_front();
        }
        self.newest = event.sequence;
        self.events.push_back(event);
    }

    /// Returns up to `limit` events after the number `after`.
    pub(super) fn after(&self, after: i64, limit: usize) -> Next {
        if after >= self.newest {
            return Next::Nothing;
        }
        let oldest = self.newest - i64::try_from(self.events.len()).unwrap_or(i64::MAX) + 1;
        match usize::try_from(after + 1 - oldest) {
            Ok(begin) => Next::Here(self.events.iter().skip(begin).take(limit).cloned().collect()),
            Err(_) => Next::Older(self.newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use sparkgate_store::About;

    fn event(sequence: i64) -> Arc<FeedEvent> {
        let of = About {
            tenant: String::new(),
            principal: String::new(),
            owner: String::new(),
            namespace: String::new(),
            labels: Default::default(),
        };
        let event = Event {
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
        FeedEvent::new(sequence, event)
    }

    fn numbers(ring: &Ring, after: i64) -> Option<Vec<i64>> {
        match ring.after(after, 2) {
            Next::Here(events) => Some(events.iter().map(|event| event.sequence).collect()),
            Next::Nothing => Some(Vec::new()),
            Next::Older(_) => None,
        }
    }

    #[test]
    fn the_ring_keeps_the_newest_changes_and_detects_missing_ones() {
        let mut ring = Ring::new(3);
        ring.reset(10);
        assert_eq!((numbers(&ring, 9), numbers(&ring, 10)), (None, Some(vec![])));
        (11..=15).for_each(|sequence| ring.push(event(sequence)));
        assert_eq!(ring.events.len(), 3);
        assert_eq!(numbers(&ring, 11), None);
        assert_eq!(numbers(&ring, 12), Some(vec![13, 14]));
        assert_eq!(numbers(&ring, 14), Some(vec![15]));
        assert_eq!(numbers(&ring, 15), Some(vec![]));
        assert_eq!(numbers(&ring, 99), Some(vec![]));
        ring.push(event(18));
        assert_eq!((numbers(&ring, 14), numbers(&ring, 16), numbers(&ring, 17)), (None, None, Some(vec![18])));
    }
}
