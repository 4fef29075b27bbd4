//! Background workers: loops that make no decisions themselves.

mod clean_up;
mod deadlines;
mod launcher;
mod lease_keeper;
mod publisher;
mod rights;
mod singleton;
mod watcher;

pub use clean_up::clean_up;
pub use deadlines::deadlines;
pub use launcher::launcher;
pub use lease_keeper::lease_keeper;
pub use publisher::publisher;
pub use rights::rights;
pub use watcher::watcher;
