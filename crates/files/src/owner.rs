//! Which database a store belongs to: databases that are copies of one another have the same installation, and so the same folder.

use futures::StreamExt;
use object_store::{ObjectStoreExt, PutMode, path::Path};
use uuid::Uuid;

use super::{Error, FileStore};

const ACTION: &str = "looking for the owner of a store";

impl FileStore {
    /// Returns the generation of the database that the folder of the installation belongs to; `None` if it has no mark yet.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn owner(&self) -> Result<Option<Uuid>, Error> {
        let Some(mark) = self.mark() else { return Ok(None) };
        let failed = |error| self.error(ACTION, mark.as_ref(), error);
        let read = async { self.store.get(&mark).await?.bytes().await };
        match read.await {
            // One that can't be read is of no generation.
            Ok(bytes) => {
                Ok(Some(std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns whether the folder of the installation belongs to this generation of its database. A folder without a mark gets one. A
    /// copy marks an empty folder only: its original may be of a release that makes no marks.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn belongs_to(&self, generation: Uuid, is_copy: bool) -> Result<bool, Error> {
        let Some(mark) = self.mark() else { return Ok(true) };
        if let Some(owner) = self.owner().await? {
            return Ok(owner == generation);
        }
        let failed = |error| self.error(ACTION, mark.as_ref(), error);
        if is_copy && self.store.list(Some(&self.prefix)).next().await.transpose().map_err(failed)?.is_some() {
            return Ok(false);
        }
        let content = || generation.to_string().into_bytes().into();
        match self.store.put_opts(&mark, content(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(self.owner().await? == Some(generation))
            }
            // A store without conditions.
            Err(object_store::Error::NotImplemented { .. }) => {
                self.store.put(&mark, content()).await.map(|_| true).map_err(failed)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns the path of the mark: beside the folder, whose objects are compared with rows.
    fn mark(&self) -> Option<Path> {
        let mark = format!("{}-generation", self.installation.as_deref()?);
        let parent: Vec<_> = self.prefix.parts().collect();
        Some(parent.iter().take(parent.len() - 1).cloned().collect::<Path>().join(mark))
    }
}
