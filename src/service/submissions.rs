//! Reads of submissions: one, a page, the objects of one.

use serde_json::Value;

use super::{Error, Gateway};
use crate::{
    cluster::Manifest,
    store::{Filter, Page, Submission},
    submission::SubmissionId,
};

/// The signed identity of a driver pod.
const IDENTITY: &str = "/metadata/annotations/sparkgate.dev~1identity";

impl Gateway {
    /// Returns a submission, or `None` if none has that id. Includes submissions that Spark's `clear` hides.
    pub async fn submission(&self, id: &SubmissionId) -> Result<Option<Submission>, Error> {
        Ok(self.store.submission(id).await?)
    }

    /// Returns up to `limit` submissions that match a filter, newest first, starting before `number` if one is given.
    pub async fn submissions(&self, filter: &Filter, before: Option<i64>, limit: u32) -> Result<Page, Error> {
        Ok(self.store.submissions(filter, before, limit).await?)
    }

    /// Returns how many submissions match a filter.
    pub async fn count(&self, filter: &Filter) -> Result<u64, Error> {
        Ok(self.store.count(filter).await?)
    }

    /// Returns the number of the newest submission, if there is one.
    pub async fn newest(&self) -> Result<Option<i64>, Error> {
        Ok(self.store.newest().await?)
    }

    /// Returns the objects of an attempt in the order of their creation; `None` if they aren't stored (any more).
    pub async fn manifest(&self, id: &SubmissionId, attempt: i32) -> Result<Option<Vec<Value>>, Error> {
        let manifest = self.store.manifest(id, attempt).await?;
        let mut objects = manifest.as_deref().map(objects).transpose()?;
        for object in objects.iter_mut().flatten() {
            // Hidden: another client could create a pod with this annotation before the gateway does, and the gateway would
            // adopt that pod.
            if let Some(identity) = object.pointer_mut(IDENTITY) {
                *identity = "…".into();
            }
        }
        Ok(objects)
    }
}

/// Returns the objects of a stored manifest.
pub(super) fn objects(manifest: &str) -> Result<Vec<Value>, Error> {
    let manifest: Manifest<Value> = serde_json::from_str(manifest)
        .map_err(|error| Error::Internal("reading the objects of a submission".into(), error.into()))?;
    let Manifest { before, pod, beside } = manifest;
    Ok(before.into_iter().chain([pod]).chain(beside).collect())
}
