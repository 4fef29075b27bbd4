//! Webhooks: sends state changes to URLs of users, signed after Standard Webhooks.
//!
//! Events are queued for the webhooks that they match in the order of their numbers, by one statement that also moves the cursor
//! (`store/webhooks/deliveries.rs`). One replica sends what is due, under a lease. Of each submission, a webhook gets one change
//! after the other: at least once, until the receiver answers with 2xx.

mod attach;
mod deliver;
mod destination;
mod destinations;
mod installation;
mod lineage_server;
mod manage;
mod message;
mod parent_run;
mod secrets;
mod send;

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use send::Sender;
use sparkgate_common::shares::Shares;
use sparkgate_core::{encryption::EncryptionKeys, event_feed::EventFeed, leadership::leases::Leases};
use sparkgate_store::Store;
use sparkgate_submission::Installation;

pub use destination::WebhookSettings;
pub use lineage_server::LineageServer;
pub use manage::{CreatedWebhook, Submissions as WebhookSubmissions, WebhookRequest};

/// Webhooks of one tenant that are served at the same time, of those whose receivers fail or of the others; of all tenants, twice as
/// many.
const AT_ONCE: usize = 32;

/// The webhooks of all tenants, and their deliveries.
#[derive(Debug)]
pub struct Webhooks {
    store: Store,
    leases: Arc<Leases>,
    keys: Arc<EncryptionKeys>,
    installation: Arc<Installation>,
    events: Arc<EventFeed>,
    settings: Arc<WebhookSettings>,
    sender: OnceLock<Sender>,
    /// The server that gets run events about all submissions.
    lineage: Option<LineageServer>,
    lineage_sender: OnceLock<Sender>,
    /// Notified when this process queued deliveries again.
    replayed: Notify,
    /// By tenant, and by whether receivers fail.
    shares: Shares,
}

impl Webhooks {
    pub fn new(
        store: Store,
        leases: Arc<Leases>,
        keys: Arc<EncryptionKeys>,
        installation: Arc<Installation>,
        events: Arc<EventFeed>,
        (settings, lineage): (WebhookSettings, Option<LineageServer>),
    ) -> Self {
        Self {
            store,
            leases,
            keys,
            installation,
            events,
            settings: Arc::new(settings),
            sender: OnceLock::new(),
            lineage,
            lineage_sender: OnceLock::new(),
            replayed: Notify::new(),
            shares: Shares::new(AT_ONCE),
        }
    }
}
