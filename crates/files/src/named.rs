//! Copies of objects under names, for drivers that read the store themselves.
//!
//! Spark names a file after the last segment of its URI, and the key of an object ends in no name. The copies of `<tenant>/<object>`
//! are `<tenant>/by-name/<object>/<name>`, so each is found by its object, and all submissions share it that use this name.

use futures::TryStreamExt;
use object_store::{ObjectStoreExt, path::Path};

use super::{Error, FileStore};

/// The folder of the copies, below that of the tenant.
const FOLDER: &str = "by-name";

/// The largest object that S3 copies in one call.
const LARGEST_COPY: u64 = 5 << 30;

impl FileStore {
    /// Returns whether there can be a copy of an object of this size under this name. Hadoop takes some characters for a pattern, or for
    /// more than a name.
    #[must_use]
    pub fn copies(size: u64, name: &str) -> bool {
        let is_plain = |c: char| !c.is_control() && !"/\\*?[]{}^:%#".contains(c);
        size <= LARGEST_COPY && name.chars().all(is_plain)
    }

    /// Makes sure that there is a copy of an object under a name, which has no escapes.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn copy_by_name(&self, key: &str, name: &str) -> Result<(), Error> {
        let to = self.by_name(key, name)?;
        match self.store.head(&to).await {
            Ok(_) => return Ok(()),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(self.error("looking for a copy of a file", key, error)),
        }
        self.store.copy(&self.path(key), &to).await.map_err(|error| self.error("copying a file", key, error))
    }

    /// Returns the path of a copy below the URL of the store. The name is returned as it was given, with its escapes.
    #[must_use]
    pub fn place_by_name(&self, key: &str, name: &str) -> String {
        let own = self.installation.as_deref().unwrap_or_default();
        format!("{own}/{}/{name}", copies_of(key))
    }

    /// Deletes the copies of an object.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn delete_copies(&self, key: &str) -> Result<(), Error> {
        let failed = |error| self.error("deleting copies of a file", key, error);
        let copies = self.store.list(Some(&self.path(&copies_of(key)))).try_collect().await.map_err(failed)?;
        self.delete_all(copies).await.map_err(failed)
    }

    fn by_name(&self, key: &str, name: &str) -> Result<Path, Error> {
        // Joining would escape characters, and the driver asks for the name itself.
        let path = Path::parse(format!("{}/{name}", self.path(&copies_of(key))));
        path.map_err(|error| self.error("naming a copy of a file", key, error.into()))
    }
}

/// Returns the folder of the copies of an object.
fn copies_of(key: &str) -> String {
    let (tenant, object) = key.split_once('/').unwrap_or(("", key));
    format!("{tenant}/{FOLDER}/{object}")
}

/// Returns the key of the object that an object belongs to: itself, unless it is a copy.
pub(super) fn original(key: &str) -> String {
    let parts: Vec<&str> = key.split('/').collect();
    match parts.as_slice() {
        [tenant, FOLDER, object, _] => format!("{tenant}/{object}"),
        _ => key.to_owned(),
    }
}
