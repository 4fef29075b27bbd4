//! Kueue: the `Workload`s that the gateway owns, one for each attempt that a queue of Kueue admits.
//!
//! A `Workload` describes the driver and its executors before any pod exists. Kueue reserves quota for all of them together, and
//! admits it with the flavors of nodes on which they run and the number of executors. It holds the quota until the `Workload` is
//! deleted. No pod owns it: its ownership labels and its signed identity say which attempt it belongs to.
//!
//! Kueue's API has had two versions, which differ in how a priority class is named. `Cluster::kueue` asks the API server which one it
//! serves.

mod admission;
mod api;
mod calls;
mod parts;
mod pending;
mod placement;
mod pods;
mod request;
mod state;
#[cfg(test)]
mod tests;
mod watch;

pub use self::{
    admission::{Admission, Assignment, PodSetUpdate},
    api::Kueue,
    pending::PendingReason,
    placement::{Flavor, placements},
    pods::AttemptPods,
    request::{Executors, WorkloadRequest},
    state::{EvictionReason, Workload, WorkloadState},
    watch::WorkloadNews,
};
