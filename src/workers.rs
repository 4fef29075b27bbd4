//! The background side: two loops that decide nothing themselves.

mod launcher;
mod watcher;

pub use launcher::launcher;
pub use watcher::watcher;
