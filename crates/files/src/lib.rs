//! Uploaded files and logs, as objects in a directory or in an object store: S3 and what is compatible with it, Google Cloud Storage, Azure.
//!
//! Each upload writes an object of its own, under a new key. Which object is the content of a file is said by the database alone,
//! so an object that was written half, or by an upload that lost against another one, is never a file. The log of a container is a
//! sequence of objects ([`LogFolder`]), or an object of the operator's own collector ([`CollectedLogs`]).

mod collected;
mod named;
mod object;
mod open;
mod owner;
mod pod_log;
mod probe;
mod sweep;
mod upload;

use std::{io, ops::Range, path::PathBuf, sync::Arc};

use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use uuid::Uuid;

pub use collected::{CollectedFrom, CollectedLog, CollectedLogs};
pub use open::OpenError;
pub use pod_log::{LogChunk, LogEnding, LogFolder, LogIndex, LogPosition};
pub use sweep::OldObject;
pub use upload::{Digest, Upload, tenant_folder};

/// The bytes of an object that are read at once, and held until the reader has taken them.
const CHUNK: u64 = 1 << 20;

/// The error of a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no object with this key.
    #[error("the file store {store} has no object {key}")]
    Missing { store: String, key: String },
    /// The store can't be reached, or refuses: a retry may succeed.
    #[error("{action}: the file store {store} is not available")]
    Unavailable { action: &'static str, store: String, source: object_store::Error },
    /// The store belongs to another database with the same installation: nothing may be changed.
    #[error(
        "the file store {store} belongs to the database that this one is a copy of: its operator can give this gateway another store, or \
         run `sparkgate adopt-cluster --same-store` if the other database is gone"
    )]
    Foreign { store: String },
}

/// The objects of one directory, or of one prefix in a bucket. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileStore {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The directory, if it is one.
    directory: Option<PathBuf>,
    /// The folder of the installation, once it is known.
    installation: Option<String>,
    /// The URL, for messages.
    name: String,
}

impl FileStore {
    /// Returns the part of the store that belongs to an installation: several may share one bucket.
    #[must_use]
    pub fn for_installation(self, id: Uuid) -> Self {
        self.within(id.to_string())
    }

    /// Returns the part for the logs of an installation. It is no part of the one for files, whose objects are compared with the rows
    /// of files: both may be in one store.
    #[must_use]
    pub fn for_logs_of_installation(self, id: Uuid) -> Self {
        self.within(format!("{id}-logs"))
    }

    fn within(mut self, folder: String) -> Self {
        self.directory = self.directory.map(|directory| directory.join(&folder));
        self.prefix = self.prefix.join(folder.as_str());
        self.installation = Some(folder);
        self
    }

    /// Begins the upload of an object under a new key, in a folder of the tenant.
    pub fn begin(&self, tenant: &str) -> Upload {
        Upload::new(self, tenant)
    }

    /// Returns the bytes of an object. Reads a part once its reader has taken the part before.
    ///
    /// # Errors
    /// Of the first part at once, so that its caller can still answer with an error; of later ones in the stream.
    pub async fn read(&self, key: &str, range: Range<u64>) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        if range.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let first = self.part(key, &range).await?;
        let at = range.start + first.len() as u64;
        let state = (self.clone(), key.to_owned(), at..range.end);
        let rest = stream::try_unfold(state, async |(store, key, range)| {
            if range.is_empty() {
                return Ok(None);
            }
            let part = store.part(&key, &range).await?;
            let at = range.start + part.len() as u64;
            Ok(Some((part, (store, key, at..range.end))))
        });
        Ok(stream::once(async { Ok(first) }).chain(rest).boxed())
    }

    async fn part(&self, key: &str, range: &Range<u64>) -> Result<Bytes, Error> {
        let part = range.start..range.end.min(range.start + CHUNK);
        let read = self.store.get_range(&self.path(key), part).await;
        let bytes = read.map_err(|error| self.error("reading a file", key, error))?;
        // Otherwise the stream would never end.
        if bytes.is_empty() {
            return Err(Error::Missing { store: self.name.clone(), key: key.to_owned() });
        }
        Ok(bytes)
    }

    /// Returns whether there is an object with this key.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn has(&self, key: &str) -> Result<bool, Error> {
        match self.store.head(&self.path(key)).await.map_err(|error| self.error("looking for a file", key, error)) {
            Ok(_) => Ok(true),
            Err(Error::Missing { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object. One that doesn't exist counts as deleted.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        match self.store.delete(&self.path(key)).await.map_err(|error| self.error("deleting a file", key, error)) {
            Ok(()) | Err(Error::Missing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn path(&self, key: &str) -> Path {
        key.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn error(&self, action: &'static str, key: &str, error: object_store::Error) -> Error {
        let store = self.name.clone();
        match error {
            object_store::Error::NotFound { .. } => Error::Missing { store, key: key.to_owned() },
            source => Error::Unavailable { action, store, source },
        }
    }

    fn io(&self, action: &'static str, error: io::Error) -> Error {
        let source = object_store::Error::Generic { store: "files", source: error.into() };
        Error::Unavailable { action, store: self.name.clone(), source }
    }
}

#[cfg(test)]
mod tests;
