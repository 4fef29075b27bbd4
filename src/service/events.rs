//! Subscriptions to state changes. One reader in each replica keeps the newest changes in memory. Subscribers read them from
//! memory at their own pace, or from the database when they are far behind.

mod filter;
mod hub;
mod of_one;
mod publish;
mod ring;
mod subscription;
mod wait;

pub use crate::store::Change;
pub use filter::ChangeFilter;
pub(super) use hub::Hub;
pub use of_one::Changes;
pub use publish::Published;
pub use ring::Told;
pub use subscription::{Interrupted, Subscription};
pub use wait::{Target, Waited};
