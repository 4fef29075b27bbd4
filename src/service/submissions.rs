//! Looking at submissions: one, pages of them, what was created for one.

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
    /// One submission, `None` if there is none of that id. Those that Spark's `clear` hides are there.
    pub async fn submission(&self, id: &SubmissionId) -> Result<Option<Submission>, Error> {
        Ok(self.store.submission(id).await?)
    }

    /// Up to `limit` submissions that a filter finds, the newest first, from before `number` if one is given.
    pub async fn submissions(&self, filter: &Filter, before: Option<i64>, limit: u32) -> Result<Page, Error> {
        Ok(self.store.submissions(filter, before, limit).await?)
    }

    /// How many submissions a filter finds.
    pub async fn count(&self, filter: &Filter) -> Result<u64, Error> {
        Ok(self.store.count(filter).await?)
    }

    /// The number of the newest submission, if there is one.
    pub async fn newest(&self) -> Result<Option<i64>, Error> {
        Ok(self.store.newest().await?)
    }

    /// The objects of an attempt in the order of their creation; `None` if they aren't kept (any more).
    pub async fn manifest(&self, id: &SubmissionId, attempt: i32) -> Result<Option<Vec<Value>>, Error> {
        let manifest = self.store.manifest(id, attempt).await?;
        let mut objects = manifest.as_deref().map(objects).transpose()?;
        for object in objects.iter_mut().flatten() {
            // A pod that others make with it before ours would count as ours.
            if let Some(identity) = object.pointer_mut(IDENTITY) {
                *identity = "…".into();
            }
        }
        Ok(objects)
    }
}

/// The objects of a kept manifest.
pub(super) fn objects(manifest: &str) -> Result<Vec<Value>, Error> {
    let manifest: Manifest<Value> = serde_json::from_str(manifest)
        .map_err(|error| Error::Internal("reading the objects of a submission".into(), error.into()))?;
    let Manifest { before, pod, beside } = manifest;
    Ok(before.into_iter().chain([pod]).chain(beside).collect())
}
