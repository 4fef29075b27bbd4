//! The Spark UI of running drivers: who may open it, where it is, and requests to it.
//!
//! What a driver sends is hostile: a page of it must not act as its reader. So no request to a driver carries credentials, and none of
//! the requests of its pages needs some: a caller that may read the submission gets a ticket, which is part of the path of all of them.

mod history;
mod kills;
mod origin;
mod requests;
mod said;
pub mod sizing;
mod summary;
mod ticket;

use std::{
    collections::HashMap,
    net::SocketAddr,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::Utc;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::time::Instant;

use sparkgate_cluster::Cluster;
use sparkgate_common::{error::Error, tenant_slots::TenantSlots};
use sparkgate_store::{Store, Submission};
use sparkgate_submission::{Installation, SubmissionId};
use sparkgate_tenancy::session::Session;

pub use history::{HistoryUrl, HistoryUrlError};
pub use kills::{JobKill, KillPermission};
pub use origin::{UiHost, UiOrigin, UiOriginError};
pub use requests::Asked;
pub use said::{ExecutorPeak, ExecutorUse};
pub use sizing::Advice;
pub use summary::Summary;
pub use ticket::{Ticket, TicketFault};

/// How long the address of a driver is used without asking the API server again.
const ADDRESS: Duration = Duration::from_secs(2);

/// The most kills of a submission's jobs and stages at once; then there may be one each second. A driver, which sees the tickets of its
/// readers, could fill the audit otherwise.
const KILLS: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// What the gateway does with the UIs of drivers.
#[derive(Debug, Clone)]
pub struct SparkUiSettings {
    /// Whether the UIs of running drivers are served.
    pub is_served: bool,
    /// Where they are served; `None` beside everything else.
    pub origin: Option<UiOrigin>,
    /// Where the UI of an ended submission is.
    pub history: Option<HistoryUrl>,
    /// How often a long-running driver is asked for its jobs; `None` asks none.
    pub summary_period: Option<Duration>,
}

impl Default for SparkUiSettings {
    fn default() -> Self {
        Self { is_served: true, origin: None, history: None, summary_period: Some(Duration::from_secs(60)) }
    }
}

/// Where the UI of a submission is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UiPlace {
    /// It is that of the driver, now or soon.
    Driver,
    /// The submission has ended: this URL of the operator's History Server shows it.
    History(String),
    /// There is none: the submission has ended, or the gateway serves no UIs.
    Nowhere,
}

/// The UIs of drivers.
pub struct SparkUi {
    store: Store,
    cluster: Cluster,
    installation: Arc<Installation>,
    settings: SparkUiSettings,
    /// The requests under way, by submission.
    of_submissions: Arc<TenantSlots>,
    /// The same by tenant.
    of_tenants: Arc<TenantSlots>,
    addresses: Arc<Mutex<Addresses>>,
    /// How often jobs and stages are killed, by submission.
    kills: Arc<DefaultKeyedRateLimiter<String>>,
}

/// Where pods listened when the API server was asked, by uid.
type Addresses = HashMap<String, (Instant, Option<SocketAddr>)>;

impl SparkUi {
    pub fn new(store: Store, cluster: Cluster, installation: Arc<Installation>, settings: SparkUiSettings) -> Self {
        Self {
            store,
            cluster,
            installation,
            settings,
            of_submissions: Arc::new(TenantSlots::new("sparkUiOfSubmission")),
            of_tenants: Arc::new(TenantSlots::new("sparkUiOfTenant")),
            addresses: Arc::default(),
            kills: Arc::new(RateLimiter::keyed(Quota::per_second(NonZeroU32::MIN).allow_burst(KILLS))),
        }
    }

    /// Returns where the UI of a submission is, which the caller may read.
    pub fn place(&self, submission: &Submission) -> UiPlace {
        match &self.settings.history {
            _ if !submission.state.is_terminal() && self.settings.is_served => UiPlace::Driver,
            Some(history) if submission.state.is_terminal() => UiPlace::History(history.of(submission)),
            _ => UiPlace::Nowhere,
        }
    }

    /// Returns the origin of UIs, if they have one.
    pub fn origin(&self) -> Option<&UiOrigin> {
        self.settings.origin.as_ref()
    }

    /// Returns the text of a ticket for the UI of a submission, which the caller may read.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub fn ticket(&self, caller: &Session, submission: &Submission) -> Result<String, Error> {
        let may_kill = caller.killable().covers(&submission.tenant, &submission.principal);
        let principal = caller.actor().map(|actor| actor.principal);
        Ticket::new(submission.id.clone(), may_kill, principal, Utc::now()).text(&self.installation)
    }

    /// Checks a ticket.
    ///
    /// # Errors
    /// It isn't one of this installation for this submission, or its time is over.
    pub fn check(&self, id: &SubmissionId, text: &str) -> Result<Ticket, TicketFault> {
        Ticket::read(&self.installation, id, text, Utc::now())
    }

    /// Returns where the UI of a pod listens.
    async fn address(&self, namespace: &str, pod: &str, uid: &str) -> Result<Option<SocketAddr>, Error> {
        let known = self.lock().get(uid).filter(|(at, _)| at.elapsed() < ADDRESS).map(|(_, address)| *address);
        if let Some(address) = known {
            return Ok(address);
        }
        let address = self.cluster.driver_ui(namespace, pod, uid).await?;
        let mut addresses = self.lock();
        addresses.retain(|_, (at, _)| at.elapsed() < ADDRESS);
        addresses.insert(uid.to_owned(), (Instant::now(), address));
        Ok(address)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
