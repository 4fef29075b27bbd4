//! What operators and users want to see at a glance: a day of submissions, and the state of the installation.

use super::{error::Error, session::Session};
use crate::{
    access::Action,
    store::{Day, LeaseRecord, LiveCount, Scope, Store, WatchRecord},
};

/// Reads overviews.
#[derive(Debug)]
pub struct Overview {
    store: Store,
}

/// The replicas of an installation, what they hold, and the use of its tenants.
#[derive(Debug, Clone, PartialEq)]
pub struct InstallationOverview {
    pub leases: Vec<LeaseRecord>,
    pub watches: Vec<WatchRecord>,
    pub live: Vec<LiveCount>,
}

impl Overview {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
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
        Ok(InstallationOverview { leases, watches, live })
    }

    /// Returns whether the caller is an operator of all tenants.
    pub fn may_see_installation(caller: &Session) -> bool {
        caller.audited() == Scope::installation()
    }
}
