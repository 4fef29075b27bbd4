//! Checks a store.

use object_store::ObjectStoreExt;
use uuid::Uuid;

use super::{Error, FileStore};

/// The folder of objects that only check whether the store can be used.
const FOLDER: &str = "probe";
const CONTENT: &[u8] = b"sparkgate doctor";

impl FileStore {
    /// Writes an object, reads it, and deletes it.
    ///
    /// # Errors
    /// [`Error`] of the first of these that fails.
    pub async fn probe(&self) -> Result<(), Error> {
        let key = format!("{FOLDER}/{}", Uuid::new_v4());
        let path = self.path(&key);
        let written = self.store.put(&path, CONTENT.into()).await;
        written.map_err(|error| self.error("writing an object", &key, error))?;
        let read = async { self.store.get(&path).await?.bytes().await };
        let read = read.await.map_err(|error| self.error("reading an object", &key, error));
        let deleted = self.store.delete(&path).await;
        let is_same = read? == CONTENT;
        deleted.map_err(|error| self.error("deleting an object", &key, error))?;
        if is_same { Ok(()) } else { Err(Error::Missing { store: self.name.clone(), key }) }
    }
}
