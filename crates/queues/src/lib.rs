//! Queues: who gets the cluster next.
//!
//! A submission in a queue of the access file waits until it is admitted. One replica admits for all, under a lease
//! ([`Queues::run`]): it reads what runs and who is next, decides by the pure rule (`submission/queues`), and writes the decision with one
//! guarded statement (`store/queues/`). A claim takes only submissions that are admitted. [`Queues`] is also an attachment: it computes at
//! submit which queue a submission belongs to, and what it costs there.

mod admission;
mod capacity;
mod cost;
mod enter;
mod figures;
mod manage;
mod places;
mod requeue;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::time::Instant;

use sparkgate_cluster::Cluster;
use sparkgate_core::{
    leadership::{clock::DatabaseClock, leases::Leases},
    wakeups::Wakeups,
};
use sparkgate_store::Store;
use sparkgate_submission::queues::Amounts;
use sparkgate_tenancy::access_file::AccessFile;

pub use admission::Rest;
pub use manage::{QueueOverview, TenantInQueue};
pub use places::{MOST_PLACES, PlaceChange, PlacesChanged};
pub use requeue::NewPlace;

/// The queues of the access file, and the submissions in them.
pub struct Queues {
    store: Store,
    cluster: Cluster,
    access: Arc<AccessFile>,
    leases: Arc<Leases>,
    wakeups: Arc<Wakeups>,
    clock: DatabaseClock,
    /// When the reasons of submissions that wait were written, by their numbers.
    explained: Mutex<HashMap<i64, Instant>>,
    /// What was learned of the capacity, as it was read last.
    learned: Mutex<Amounts>,
    /// Submissions that couldn't be admitted, by their numbers, and until when others are admitted in their place.
    set_aside: Mutex<HashMap<i64, Instant>>,
}

impl Queues {
    pub fn new(
        store: Store,
        cluster: Cluster,
        access: Arc<AccessFile>,
        leases: Arc<Leases>,
        wakeups: Arc<Wakeups>,
    ) -> Self {
        let clock = DatabaseClock::new(store.clone());
        Self {
            store,
            cluster,
            access,
            leases,
            wakeups,
            clock,
            explained: Mutex::default(),
            learned: Mutex::default(),
            set_aside: Mutex::default(),
        }
    }
}
