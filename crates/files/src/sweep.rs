//! Finds objects that no file has: uploads that were cut off by the end of their process.

use std::{fs, io, path::Path as FsPath, time::SystemTime};

use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};

use super::{Error, FileStore, named::original};

/// An object that was written some time ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldObject {
    pub key: String,
    /// The key of the object whose copy it is, or its own.
    pub original: String,
}

impl FileStore {
    /// Returns all objects that were written before a time, in no order.
    pub fn older_than(&self, time: DateTime<Utc>) -> BoxStream<'static, Result<OldObject, Error>> {
        let (store, prefix) = (self.clone(), self.prefix.clone());
        let objects = self.store.list(Some(&self.prefix)).map_err(move |error| store.error("listing files", "", error));
        objects
            .try_filter_map(move |object| {
                let key = object
                    .location
                    .prefix_match(&prefix)
                    .map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"));
                let key = key.filter(|_| object.last_modified < time);
                async move { Ok(key.map(|key| OldObject { original: original(&key), key })) }
            })
            .boxed()
    }

    /// Deletes the parts of uploads to a directory that were last written before a time, and returns how many there were. An object
    /// store has its own rule for them (`AbortIncompleteMultipartUpload`).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the directory can't be read.
    pub async fn delete_parts_older_than(&self, time: DateTime<Utc>) -> Result<usize, Error> {
        let action = "listing parts of uploads";
        let Some(directory) = self.directory.clone() else { return Ok(0) };
        let deleted = tokio::task::spawn_blocking(move || delete_parts(&directory, time.into())).await;
        deleted.map_err(io::Error::other).and_then(|deleted| deleted).map_err(|error| self.io(action, error))
    }
}

/// Deletes old parts in the folders of tenants. The library names them after their object: `<key>#<number>`.
fn delete_parts(directory: &FsPath, time: SystemTime) -> io::Result<usize> {
    let mut deleted = 0;
    if !directory.exists() {
        return Ok(0);
    }
    for folder in fs::read_dir(directory)? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            let file = file?;
            let is_part = file.file_name().to_string_lossy().contains('#');
            // An upload that ends meanwhile renames its part.
            let is_old = file.metadata().and_then(|about| about.modified()).is_ok_and(|at| at < time);
            if is_part && is_old && fs::remove_file(file.path()).is_ok() {
                deleted += 1;
            }
        }
    }
    Ok(deleted)
}
