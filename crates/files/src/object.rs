//! Objects with keys of their own: listed by folder, deleted with their folder.

use std::io;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};

use super::{Error, FileStore};

impl FileStore {
    /// Writes an object at once. One with this key is replaced.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the object may have been written.
    pub async fn put(&self, key: &str, content: Bytes) -> Result<(), Error> {
        let put = self.store.put(&self.path(key), PutPayload::from(content)).await;
        put.map(drop).map_err(|error| self.error("writing an object", key, error))
    }

    /// Returns the whole content of a small object.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn content(&self, key: &str) -> Result<Bytes, Error> {
        let action = "reading an object";
        let found = self.store.get(&self.path(key)).await.map_err(|error| self.error(action, key, error))?;
        found.bytes().await.map_err(|error| self.error(action, key, error))
    }

    /// Returns the size of an object. `None` if there is none with this key.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        match self.store.head(&self.path(key)).await.map_err(|error| self.error("looking for an object", key, error)) {
            Ok(object) => Ok(Some(object.size)),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the names and the sizes of the objects in a folder, not of those in folders below it, in the order of their names.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn objects(&self, folder: &str) -> Result<Vec<(String, u64)>, Error> {
        let listed = self.store.list_with_delimiter(Some(&self.path(folder))).await;
        let listed = listed.map_err(|error| self.error("listing objects", folder, error))?;
        let named =
            listed.objects.into_iter().filter_map(|object| Some((object.location.filename()?.to_owned(), object.size)));
        let mut named: Vec<_> = named.collect();
        named.sort();
        Ok(named)
    }

    /// Returns the names of the folders in a folder; the key of the top is empty.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn folders(&self, folder: &str) -> Result<Vec<String>, Error> {
        let path = if folder.is_empty() { self.prefix.clone() } else { self.path(folder) };
        let listed = self.store.list_with_delimiter(Some(&path)).await;
        let listed = listed.map_err(|error| self.error("listing folders", folder, error))?;
        Ok(listed.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned)).collect())
    }

    /// Deletes a folder with all that is below it, unless something in it was written since a time. Returns how many objects it had.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: a part may be left.
    pub async fn delete_folder(&self, folder: &str, before: DateTime<Utc>) -> Result<usize, Error> {
        let failed = |error| self.error("deleting a folder", folder, error);
        let objects: Vec<_> = self.store.list(Some(&self.path(folder))).try_collect().await.map_err(failed)?;
        if objects.iter().any(|object| object.last_modified >= before) {
            return Ok(0);
        }
        let count = objects.len();
        self.delete_all(objects).await.map_err(failed)?;
        // An object store has no empty folders.
        if let Some(directory) = &self.directory {
            let path = directory.join(folder);
            match tokio::fs::remove_dir_all(path).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.io("deleting a folder", error));
                }
                _ => {}
            }
        }
        Ok(count)
    }

    /// Deletes objects that were listed. One that is gone meanwhile counts as deleted.
    pub(super) async fn delete_all(&self, objects: Vec<ObjectMeta>) -> object_store::Result<()> {
        let paths = stream::iter(objects.into_iter().map(|object| Ok(object.location))).boxed();
        let mut deleted = self.store.delete_stream(paths);
        while let Some(answer) = deleted.next().await {
            match answer {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
