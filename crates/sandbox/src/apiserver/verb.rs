//! The verbs of the API, each in its own file.

pub(super) mod bind;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod list;
pub(super) mod logs;
pub(super) mod update;
pub(super) mod watch;
