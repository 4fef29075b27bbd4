//! The background side: loops that decide nothing themselves.

mod launcher;
mod lease_keeper;
mod singleton;
mod watcher;

pub use launcher::launcher;
pub use lease_keeper::lease_keeper;
pub use watcher::watcher;
