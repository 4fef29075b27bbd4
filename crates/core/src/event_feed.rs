//! Subscriptions to state changes. One reader in each replica keeps the newest changes in memory. Subscribers read them from
//! memory at their own pace, or from the database when they are far behind.

mod ended_spans;
pub mod filter;
mod hub;
pub mod publish;
pub mod ring;
pub mod submission_events;
pub mod subscription;
pub mod wait;

use std::collections::BTreeMap;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::hub::Hub;
use sparkgate_common::{error::Error, tenant_slots::TenantSlots};
use sparkgate_store::Store;

/// The state changes of all replicas in one order, and the subscribers of this one.
#[derive(Debug)]
pub struct EventFeed {
    store: Store,
    hub: Hub,
    /// The subscribers of each tenant.
    of_tenants: TenantSlots,
    /// Cancelled when this process shuts down, to end the streams to clients.
    closing: CancellationToken,
}

impl EventFeed {
    pub fn new(store: Store, closing: CancellationToken) -> Self {
        Self { store, hub: Hub::default(), of_tenants: TenantSlots::new("subscribers"), closing }
    }

    /// Returns the number of the newest event: what is read afterwards contains its change and all before it.
    ///
    /// # Errors
    /// An error of the database.
    pub async fn newest(&self) -> Result<i64, Error> {
        Ok(self.store.last_number().await?)
    }

    /// Returns how many clients follow events or wait.
    pub fn subscribers(&self) -> usize {
        self.hub.subscribers()
    }

    /// Returns how many of them the callers of each tenant hold. Callers that read all tenants aren't counted.
    pub fn subscribers_of_tenants(&self) -> BTreeMap<String, u32> {
        self.of_tenants.held()
    }

    /// Returns the number of the newest event as this replica saw it last, for loops that wait for more. They are no subscribers.
    pub fn numbered(&self) -> watch::Receiver<i64> {
        self.hub.follow_numbers()
    }

    /// Reports that this process changed a state, so that subscribers get the event soon.
    pub fn changed(&self) {
        self.hub.changed();
    }
}
