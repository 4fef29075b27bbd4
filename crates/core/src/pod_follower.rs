//! Follows the pods of drivers and executors: watches them, and turns what the watch reports into state.

mod dependants;
mod ended_drivers;
pub mod executors;
mod flush;
mod observe;
mod recent_ends;
mod set_aside;
mod side_cars;
mod watch;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use tokio::sync::Semaphore;

use self::{ended_drivers::EndedDrivers, executors::Executors, set_aside::SetAside};
use crate::{effects::Effects, health::Health, leadership::leases::Leases, witness::Witness};
use sparkgate_cluster::Cluster;
use sparkgate_metrics::{Value, text};
use sparkgate_store::Store;

/// Stands for all namespaces in one watch.
const ALL: &str = "*";

/// Maximum number of concurrent checks that the lists of namespaces work.
const LOOKS: usize = 16;

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
    witness: Arc<dyn Witness>,
    /// Observations of executors that are not written to the database yet.
    pub executors: Executors,
    /// Observations of submissions whose rows can't be written at the moment.
    set_aside: SetAside,
    /// Drivers that have ended, until the pods that they created are gone.
    ended_drivers: EndedDrivers,
    /// Uids of the pods that wait for their sidecars to end.
    side_cars: Mutex<HashSet<String>>,
    looks: Semaphore,
}

impl PodFollower {
    pub fn new(
        store: Store,
        cluster: Cluster,
        leases: Arc<Leases>,
        health: Arc<Health>,
        effects: Arc<Effects>,
        witness: Arc<dyn Witness>,
    ) -> Self {
        let (executors, set_aside, side_cars) = (Executors::default(), SetAside::default(), Mutex::default());
        let (ended_drivers, looks) = (EndedDrivers::default(), Semaphore::new(LOOKS));
        Self { store, cluster, leases, health, effects, witness, executors, set_aside, ended_drivers, side_cars, looks }
    }
}
