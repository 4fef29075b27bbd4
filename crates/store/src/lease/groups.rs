//! Group commits of leases.

use std::time::Duration;

use uuid::Uuid;

use crate::{error::Error, group_commit::GroupCommit};

/// A lease that is to be acquired: its name, its holder, and for how long.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(super) name: String,
    pub(super) holder: Uuid,
    pub(super) ttl: Duration,
}

/// Maximum number of leases that are acquired together.
const TOGETHER: usize = 1000;

/// Group commits of concurrent calls: a replica may want a lease for each of many namespaces.
#[derive(Debug)]
pub(crate) struct Groups(pub(super) GroupCommit<Wanted, Result<bool, Error>>);

impl Default for Groups {
    fn default() -> Self {
        Self(GroupCommit::new(1, TOGETHER))
    }
}
