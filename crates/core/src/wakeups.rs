//! Wakes the loops of this process that have something to do.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::event_feed::EventFeed;

/// Notifications from use cases to loops of the same process. Loops find the work of other processes by polling.
#[derive(Debug)]
pub struct Wakeups {
    launcher: Notify,
    queues: Notify,
    events: Arc<EventFeed>,
}

impl Wakeups {
    pub fn new(events: Arc<EventFeed>) -> Self {
        Self { launcher: Notify::new(), queues: Notify::new(), events }
    }

    /// Reports that there may be something to launch or to kill.
    pub fn work_is_due(&self) {
        self.launcher.notify_one();
    }

    /// Waits until there may be something to launch or to kill. A notification between two calls isn't lost.
    pub async fn work_may_be_due(&self) {
        self.launcher.notified().await;
    }

    /// Waits until a queue may have something to admit. A notification between two calls isn't lost.
    pub async fn admission_may_be_due(&self) {
        self.queues.notified().await;
    }

    /// Reports that this process changed a state: subscribers get the change soon, and what waits in a queue may have room.
    pub fn state_changed(&self) {
        self.queues.notify_one();
        self.events.changed();
    }
}
