//! Checks a store.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Error, FileStore};

/// The folder of objects that only check whether the store can be used.
const FOLDER: &str = "probe";
const CONTENT: &[u8] = b"sparkgate doctor";

impl FileStore {
    /// Writes an object, lists it, reads it, and deletes it.
    ///
    /// # Errors
    /// [`Error`] of the first of these that fails.
    pub async fn probe(&self) -> Result<(), Error> {
        let folder = format!("{FOLDER}/{}", Uuid::new_v4());
        let key = format!("{folder}/object");
        self.put(&key, Bytes::from_static(CONTENT)).await?;
        let (listed, read) = (self.objects(&folder).await, self.content(&key).await);
        let deleted = self.delete_folder(&folder, DateTime::<Utc>::MAX_UTC).await;
        let is_same = listed?.len() == 1 && read? == CONTENT;
        deleted?;
        if is_same { Ok(()) } else { Err(Error::Missing { store: self.name.clone(), key }) }
    }
}
