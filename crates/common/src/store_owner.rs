//! Whether a store of objects belongs to this database. A copy of a database knows the same objects as its original, and would delete
//! what the original has written since.

use std::time::Duration;

use tokio::{sync::Mutex, time::Instant};

use crate::error::{Error, error_chain};
use sparkgate_files::{self, FileStore};
use sparkgate_store::Store;

/// How long an answer counts for writes.
const FRESH: Duration = Duration::from_secs(60);

/// Whether a store belongs to this database, as last read.
#[derive(Debug)]
pub struct StoreOwner {
    store: Store,
    known: Mutex<Option<(Instant, bool)>>,
}

impl StoreOwner {
    pub fn new(store: Store) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// Returns whether the objects are those of this database, for a clean-up.
    ///
    /// # Errors
    /// The database or the store doesn't answer.
    pub async fn is_ours(&self, objects: &FileStore) -> Result<bool, Error> {
        let mut known = self.known.lock().await;
        let generation = self.store.generation().await?;
        let ours = objects.belongs_to(generation.id, generation.is_copy).await?;
        if !ours && known.is_none_or(|(_, ours)| ours) {
            tracing::error!(
                store = objects.name(),
                "the store belongs to the database that this one is a copy of: nothing is written or deleted there: a copy takes \
                 its place with adopt-cluster --same-store, or gets a store of its own"
            );
        }
        *known = Some((Instant::now(), ours));
        Ok(ours)
    }

    /// Checks that something may be written, or deleted that this process knows, by an answer that is at most a minute old.
    ///
    /// # Errors
    /// [`Error::FilesUnavailable`] if the store belongs to another database; or as for [`Self::is_ours`].
    pub async fn check(&self, objects: &FileStore) -> Result<(), Error> {
        let known = *self.known.lock().await;
        let ours = match known {
            Some((at, ours)) if at.elapsed() < FRESH => ours,
            _ => self.is_ours(objects).await?,
        };
        if ours { Ok(()) } else { Err(sparkgate_files::Error::Foreign { store: objects.name().to_owned() }.into()) }
    }

    /// Returns the same as an answer to whether an object may be deleted.
    pub async fn may_delete(&self, objects: &FileStore) -> bool {
        let checked = self.check(objects).await;
        if let Err(error) = &checked {
            tracing::debug!("an object is left in its store: {}", error_chain(error));
        }
        checked.is_ok()
    }
}
