//! What operators and users want to see at a glance: a day of submissions, and the state of the installation.

mod checks;

use std::sync::Arc;

use super::{access_file::AccessFile, encryption::EncryptionKeys, error::Error, session::Session};
use crate::{
    access::Action,
    cluster::Cluster,
    store::{Day, LeaseRecord, LiveCount, Scope, Store, WatchRecord},
};

pub use checks::Checked;
use checks::Checks;

/// Reads overviews.
pub struct Overview {
    store: Store,
    checks: Arc<Checks>,
}

/// The replicas of an installation, what they hold, and the use of its tenants.
#[derive(Debug, Clone, PartialEq)]
pub struct InstallationOverview {
    pub leases: Vec<LeaseRecord>,
    pub watches: Vec<WatchRecord>,
    pub live: Vec<LiveCount>,
    /// What this replica's checks found last; `None` while the first round runs.
    pub checked: Option<Arc<Checked>>,
}

impl Overview {
    pub(super) fn new(store: Store, cluster: Cluster, access: Arc<AccessFile>, keys: Arc<EncryptionKeys>) -> Self {
        let checks = Arc::new(Checks::new(store.clone(), cluster, access, keys));
        Self { store, checks }
    }

    /// Sums up the last 24 hours of the submissions that the caller may read.
    pub async fn day(&self, caller: &Session) -> Result<Day, Error> {
        Ok(self.store.scoped(&caller.readable()).last_day().await?)
    }

    /// Returns the state of the installation.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller is no operator of all tenants.
    pub async fn installation(&self, caller: &Session) -> Result<InstallationOverview, Error> {
        if !Self::may_see_installation(caller) {
            let (subject, role) = (caller.principal().subject(), Action::ReadAudit.least_role());
            return Err(Error::Denied(format!("{subject} needs the role {role} in all tenants for this request")));
        }
        let (leases, watches, live) =
            tokio::try_join!(self.store.lease_records(), self.store.watch_records(), self.store.live_counts())?;
        Ok(InstallationOverview { leases, watches, live, checked: self.checks.last() })
    }

    /// Returns whether the caller is an operator of all tenants.
    pub fn may_see_installation(caller: &Session) -> bool {
        caller.audited() == Scope::installation()
    }
}
