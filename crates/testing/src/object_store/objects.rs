//! What a store has, and its faults.

use std::{collections::BTreeMap, time::Duration};

use axum::body::Bytes;
use chrono::{DateTime, Utc};

/// What happens to requests from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    None,
    /// Each is refused with 503.
    Refuse,
    /// Every second one is carried out, and answered with 503.
    LoseReplies,
    /// A list has pages of two entries, and its second page is refused with 503.
    BreakLists,
    /// A list leaves out the objects that were written within this time, and says that it is complete.
    HideNew(Duration),
}

/// An object.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) content: Bytes,
    pub(super) written: DateTime<Utc>,
}

/// The objects by bucket and key, and the parts of uploads by their id.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) objects: BTreeMap<(String, String), Object>,
    pub(super) uploads: BTreeMap<String, BTreeMap<u32, Bytes>>,
    pub(super) next_upload: u64,
}
