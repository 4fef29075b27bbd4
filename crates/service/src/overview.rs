//! What operators and users want to see at a glance: a period of submissions, and the state of the installation.

mod checks;

use std::{collections::BTreeMap, sync::Arc};

use sparkgate_access::Action;
use sparkgate_cluster::Cluster;
use sparkgate_common::error::Error;
use sparkgate_core::{encryption::EncryptionKeys, event_feed::EventFeed};
use sparkgate_kueue::KueueQueues;
use sparkgate_logs::DriverLogs;
use sparkgate_store::{LeaseRecord, LiveCount, Period, Recent, Scope, Store, WatchRecord};
use sparkgate_tenancy::{access_file::AccessFile, session::Session};

pub use checks::Checked;
use checks::Checks;

/// Reads overviews.
pub struct Overview {
    store: Store,
    events: Arc<EventFeed>,
    logs: Arc<DriverLogs>,
    checks: Arc<Checks>,
}

/// Streams of one kind that this replica serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenStreams {
    pub all: usize,
    /// Those of callers that don't read all tenants, by tenant: a stream of a caller of several tenants counts for each.
    pub of_tenants: BTreeMap<String, u32>,
}

/// The replicas of an installation, what they hold, and the use of its tenants.
#[derive(Debug, Clone, PartialEq)]
pub struct InstallationOverview {
    pub leases: Vec<LeaseRecord>,
    pub watches: Vec<WatchRecord>,
    pub live: Vec<LiveCount>,
    /// The clients of this replica that follow events or wait.
    pub subscribers: OpenStreams,
    /// The clients of this replica that read logs.
    pub log_readers: OpenStreams,
    /// What this replica's checks found last; `None` while the first round runs.
    pub checked: Option<Arc<Checked>>,
}

impl Overview {
    pub fn new(
        store: Store,
        cluster: Cluster,
        access: Arc<AccessFile>,
        keys: Arc<EncryptionKeys>,
        kueue: KueueQueues,
        (events, logs): (Arc<EventFeed>, Arc<DriverLogs>),
    ) -> Self {
        let checks = Arc::new(Checks::new(store.clone(), cluster, access, keys, kueue));
        Self { store, events, logs, checks }
    }

    /// Sums up a period of the submissions that the caller may read.
    pub async fn recent(&self, caller: &Session, period: Period) -> Result<Recent, Error> {
        Ok(self.store.scoped(&caller.readable()).recent(period).await?)
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
        let (events, logs) = (&self.events, &self.logs);
        let subscribers = OpenStreams { all: events.subscribers(), of_tenants: events.subscribers_of_tenants() };
        let log_readers = OpenStreams { all: logs.readers(), of_tenants: logs.readers_of_tenants() };
        Ok(InstallationOverview { leases, watches, live, subscribers, log_readers, checked: self.checks.last() })
    }

    /// Returns whether the caller is an operator of all tenants.
    pub fn may_see_installation(caller: &Session) -> bool {
        caller.audited() == Scope::installation()
    }
}
