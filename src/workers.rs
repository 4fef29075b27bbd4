//! Background workers: loops that make no decisions themselves.

mod clean_up;
mod deadlines;
#[path = "service/launcher.rs"]
mod launcher;
mod lease_keeper;
mod publisher;
#[path = "service/rights.rs"]
mod rights;
mod singleton;
#[path = "service/pod_follower/watch.rs"]
mod watcher;

pub use clean_up::clean_up;
pub use deadlines::deadlines;
pub use launcher::launcher;
pub use lease_keeper::lease_keeper;
pub use publisher::publisher;
pub use rights::rights;
pub use watcher::watcher;
