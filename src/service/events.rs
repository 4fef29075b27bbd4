//! Following changes: one reader for each replica keeps the newest ones in memory, and every subscriber takes them from
//! there at its own pace, or from the database once it is far behind.

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
