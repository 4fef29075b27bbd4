//! Follows the pods of drivers and executors: watches them, and turns what the watch reports into state.

pub(super) mod executors;
mod flush;
mod observe;
mod set_aside;
mod side_cars;
mod watch;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use tokio::sync::Semaphore;

use self::{executors::Executors, set_aside::SetAside, watch::LOOKS};
use super::{driver_logs::DriverLogs, effects::Effects, health::Health, leadership::leases::Leases};
use crate::{
    cluster::Cluster,
    metrics::{Value, text},
    store::Store,
};

/// Stands for all namespaces in one watch.
const ALL: &str = "*";

/// Returns the name of a watch as a label value.
fn label(scope: Option<&str>) -> Value {
    text(scope.unwrap_or(ALL))
}

/// Watches pods while this replica holds the leases of the watches, and records what happens to them.
pub struct PodFollower {
    store: Store,
    cluster: Cluster,
    leases: Arc<Leases>,
    health: Arc<Health>,
    effects: Arc<Effects>,
    logs: Arc<DriverLogs>,
    /// Observations of executors that are not written to the database yet.
    pub executors: Executors,
    /// Observations of submissions whose rows can't be written at the moment.
    set_aside: SetAside,
    /// Uids of the pods that wait for their sidecars to end.
    side_cars: Mutex<HashSet<String>>,
    looks: Semaphore,
}

impl PodFollower {
    pub(super) fn new(
        store: Store,
        cluster: Cluster,
        leases: Arc<Leases>,
        health: Arc<Health>,
        effects: Arc<Effects>,
        logs: Arc<DriverLogs>,
    ) -> Self {
        let (executors, set_aside, side_cars) = (Executors::default(), SetAside::default(), Mutex::default());
        let looks = Semaphore::new(LOOKS);
        Self { store, cluster, leases, health, effects, logs, executors, set_aside, side_cars, looks }
    }
}
