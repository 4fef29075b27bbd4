//! The history: the latest changes, kept for watches and for lists of an earlier version.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::object::Object;

/// Maximum number of changes in the history.
const CHANGES: usize = 10_000;
/// Maximum number of bytes of the objects in the history.
const BYTES: usize = 64 << 20;

/// One write.
#[derive(Debug, Clone)]
pub(in super::super) struct Change {
    pub(in super::super) version: u64,
    pub(in super::super) before: Option<Arc<Object>>,
    /// The object as it was written; for a removal, its last state with the version of the removal.
    pub(in super::super) after: Arc<Object>,
    pub(in super::super) removed: bool,
}

#[derive(Debug)]
pub(super) struct History {
    changes: VecDeque<Change>,
    bytes: usize,
    /// The newest version whose change has been dropped.
    floor: u64,
}

impl History {
    pub(super) fn new(version: u64) -> Self {
        Self { changes: VecDeque::new(), bytes: 0, floor: version }
    }

    pub(super) fn push(&mut self, change: Change) {
        self.bytes += change.after.json.len();
        self.changes.push_back(change);
        while self.changes.len() > CHANGES || self.bytes > BYTES {
            self.forget_oldest();
        }
    }

    pub(super) fn forget_all(&mut self) {
        while !self.changes.is_empty() {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.bytes -= change.after.json.len();
            self.floor = change.version;
        }
    }

    /// Returns the changes after a version, oldest first; `None` if some of them have been dropped.
    pub(super) fn since(&self, version: u64) -> Option<impl DoubleEndedIterator<Item = &Change>> {
        let start = self.changes.partition_point(|change| change.version <= version);
        (version >= self.floor).then(|| self.changes.range(start..))
    }
}
