//! The background side: two loops that decide nothing themselves.

mod clean_up;
mod launcher;
mod watcher;

pub use clean_up::clean_up;
pub use launcher::launcher;
pub use watcher::watcher;
