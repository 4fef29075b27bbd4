//! Subscriptions to state changes. One reader in each replica keeps the newest changes in memory. Subscribers read them from
//! memory at their own pace, or from the database when they are far behind.

#[path = "event_feed/filter.rs"]
mod filter;
#[path = "event_feed/hub.rs"]
mod hub;
#[path = "event_feed/submission_events.rs"]
mod of_one;
#[path = "event_feed/publish.rs"]
mod publish;
#[path = "event_feed/ring.rs"]
mod ring;
#[path = "event_feed/subscription.rs"]
mod subscription;
#[path = "event_feed/wait.rs"]
mod wait;

pub use crate::store::Change;
pub use filter::ChangeFilter;
pub(super) use hub::Hub;
pub use of_one::Changes;
pub use publish::Published;
pub use ring::Told;
pub use subscription::{Interrupted, Subscription};
pub use wait::{Target, Waited};
