//! Sessions of Spark Connect. A session is a submission whose driver runs Spark Connect's server, and a row with what only a session has.
//!
//! | part | work |
//! |---|---|
//! | `attach` | stores the row of a session, and checks what it asks for |
//! | `driver` | completes the objects of a driver: its token, its port, the jar of Spark 3.5 |
//! | `open` | finds a session by its name, or submits one; shows sessions |
//! | `door` | the requests of clients: which driver gets them, and what refuses them |
//! | `relay` | a request and its response, streamed both ways |
//! | `idle` | one replica for all: ends sessions that no client uses |
//!
//! Clients reach a driver only here. A driver accepts only requests with its token, which is derived from a key of the installation, and
//! which no client gets.

mod attach;
mod body;
mod door;
mod driver;
mod idle;
mod open;
mod relay;
mod status;
mod token;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backon::Retryable;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use sparkgate_cluster::Cluster;
use sparkgate_common::{error::Error, pauses::a_few_tries, tenant_slots::TenantSlots};
use sparkgate_core::wakeups::Wakeups;
use sparkgate_metrics::{metrics, text};
use sparkgate_store::Store;
use sparkgate_submission::{Installation, SubmissionId};

pub use body::RelayBody;
pub use door::{SESSION, refused};
pub use open::{OpenSession, SessionState};
pub use status::{Code, Status};

/// Names by which a client on the gateway's own machine reaches it.
const LOOPBACK: [&str; 2] = ["127.0.0.1", "[::1]"];
/// How long the address of a driver is used without asking the API server again.
const ADDRESS: Duration = Duration::from_secs(2);
/// How often the use of a session is recorded.
const USE: Duration = Duration::from_secs(10);

/// What the gateway does with sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectSettings {
    /// Where clients connect. Without it, there are no sessions.
    pub listen: Option<SocketAddr>,
    /// The URL of that address for clients, such as `sc://connect.example.org:15002`.
    pub url: Option<String>,
    /// Whether clients have to use TLS.
    pub is_tls: bool,
    /// The idle timeout of sessions that ask for none, and the longest that one may ask for.
    pub idle_timeout: Duration,
    pub longest_idle_timeout: Duration,
    /// The most live sessions of a principal in a tenant, and of a tenant.
    pub of_principal: u32,
    pub of_tenant: u32,
    /// The URI of the jar with Spark Connect for sessions of Spark 3.5, whose images lack it. Without it, there are none.
    pub jar_of_3_5: Option<String>,
}

impl Default for ConnectSettings {
    fn default() -> Self {
        Self {
            listen: None,
            url: None,
            is_tls: false,
            idle_timeout: Duration::from_secs(30 * 60),
            longest_idle_timeout: Duration::from_secs(24 * 3600),
            of_principal: 5,
            of_tenant: 50,
            jar_of_3_5: None,
        }
    }
}

impl ConnectSettings {
    /// Returns the connection string of a session, without credentials. `host` is the name under which the caller reaches the gateway,
    /// with its port: clients use it, too, unless the operator has another one for them.
    pub fn connection_string(&self, host: Option<&str>, id: &SubmissionId) -> Option<String> {
        let base = match &self.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => {
                let host = host?;
                // A port follows the last colon, unless that is part of an IPv6 address.
                let name =
                    host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(name, _)| name);
                // Without TLS, PySpark's client sends a token to `localhost` only.
                let name = if !self.is_tls && LOOPBACK.contains(&name) { "localhost" } else { name };
                format!("sc://{name}:{}", self.listen?.port())
            }
        };
        let tls = if self.is_tls { "use_ssl=true;" } else { "" };
        Some(format!("{base}/;{tls}{SESSION}={id}"))
    }
}

/// The sessions of all replicas.
pub struct Connect {
    store: Store,
    cluster: Cluster,
    installation: Arc<Installation>,
    wakeups: Arc<Wakeups>,
    settings: ConnectSettings,
    /// The process shuts down.
    closing: CancellationToken,
    /// The requests under way, by session.
    of_sessions: Arc<TenantSlots>,
    /// The same by tenant.
    of_tenants: Arc<TenantSlots>,
    addresses: Mutex<HashMap<String, (Instant, Option<SocketAddr>)>>,
    drivers: relay::Drivers,
    /// When the use of a session was last recorded.
    used: Mutex<HashMap<SubmissionId, Instant>>,
}

impl Connect {
    pub fn new(
        store: Store,
        cluster: Cluster,
        installation: Arc<Installation>,
        wakeups: Arc<Wakeups>,
        settings: ConnectSettings,
        closing: CancellationToken,
    ) -> Self {
        Self {
            store,
            cluster,
            installation,
            wakeups,
            settings,
            closing,
            of_sessions: Arc::new(TenantSlots::new("connectOfSession")),
            of_tenants: Arc::new(TenantSlots::new("connectOfTenant")),
            addresses: Mutex::default(),
            drivers: relay::Drivers::default(),
            used: Mutex::default(),
        }
    }

    pub fn settings(&self) -> &ConnectSettings {
        &self.settings
    }

    /// Returns how many requests of clients are under way.
    pub fn streams(&self) -> u64 {
        self.of_tenants.held().values().map(|count| u64::from(*count)).sum()
    }

    /// Measures how many sessions live.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn measure(&self) -> Result<(), Error> {
        let gauges = &metrics().connect_sessions;
        gauges.clear();
        if self.settings.listen.is_some() {
            for (tenant, count) in self.store.live_connect_sessions().await? {
                gauges.with([text(&tenant)]).set(count as f64);
            }
        }
        Ok(())
    }

    /// Returns where the server of a driver listens.
    async fn address(&self, namespace: &str, pod: &str, uid: &str) -> Result<Option<SocketAddr>, Error> {
        let known = lock(&self.addresses).get(uid).filter(|(at, _)| at.elapsed() < ADDRESS).map(|(_, found)| *found);
        if let Some(address) = known {
            return Ok(address);
        }
        let address = self.cluster.driver_connect(namespace, pod, uid).await?;
        let mut addresses = lock(&self.addresses);
        addresses.retain(|_, (at, _)| at.elapsed() < ADDRESS);
        addresses.insert(uid.to_owned(), (Instant::now(), address));
        Ok(address)
    }

    /// Records that a session is used, unless that was done lately. A failure is tried again in the background: the session would end as
    /// an idle one.
    async fn note_use(&self, id: &SubmissionId) {
        {
            let mut used = lock(&self.used);
            used.retain(|_, at| at.elapsed() < USE);
            if used.contains_key(id) {
                return;
            }
            used.insert(id.clone(), Instant::now());
        }
        if self.store.note_connect_use(id).await.is_ok() {
            return;
        }
        let (store, id) = (self.store.clone(), id.clone());
        tokio::spawn(async move {
            if let Err(error) = (|| store.note_connect_use(&id)).retry(a_few_tries()).await {
                tracing::debug!(submission = %id, %error, "the use of a session isn't recorded");
            }
        });
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_has_the_name_that_the_caller_uses_unless_the_operator_has_another() {
        let listen = Some("0.0.0.0:15002".parse().unwrap());
        let settings = ConnectSettings { listen, ..ConnectSettings::default() };
        let id: SubmissionId = "driver-20260102030405-0001".parse().unwrap();
        let of = |host| settings.connection_string(host, &id).unwrap();
        let named = |start: &str| format!("{start}x-sparkgate-session={id}");
        assert_eq!(of(Some("gw.example:6066")), named("sc://gw.example:15002/;"));
        assert_eq!(of(Some("gw.example")), named("sc://gw.example:15002/;"));
        assert_eq!(of(Some("[::1]:6066")), named("sc://localhost:15002/;"));
        assert_eq!(of(Some("127.0.0.1:6066")), named("sc://localhost:15002/;"));
        assert_eq!(of(Some("[2001:db8::1]")), named("sc://[2001:db8::1]:15002/;"));
        let own = ConnectSettings { url: Some("sc://c.example:443/".to_owned()), is_tls: true, ..settings.clone() };
        assert_eq!(own.connection_string(None, &id), Some(named("sc://c.example:443/;use_ssl=true;")));
        assert_eq!(settings.connection_string(None, &id), None);
    }
}
