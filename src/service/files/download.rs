//! The use cases "download", for members of a tenant, and "fetch", for the bearer of a signed URL.

use std::{ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use tokio::time::{Instant, sleep, timeout};

use super::{FileError, Files, Kept, tenant};
use crate::{
    files::{self, FileStore},
    metrics::metrics,
    service::{
        error::{Error, count_failure},
        session::Session,
        signature::{self, signed_with},
    },
    store::{FileRecord, UsedFile},
    submission::{Installation, SubmissionId},
};

const PAUSE: Duration = Duration::from_millis(500);

/// A file that may be read.
#[derive(Debug)]
pub struct Download {
    pub sha256: String,
    pub size: u64,
    object: String,
    objects: FileStore,
    places: Arc<tokio::sync::Semaphore>,
    patience: Duration,
}

/// What a signed URL names.
#[derive(Debug, Clone)]
pub struct Fetched<'a> {
    pub submission: &'a SubmissionId,
    pub sha256: &'a str,
    /// Without escapes.
    pub name: &'a str,
    pub signature: &'a str,
}

impl Files {
    /// Returns a file of the tenant that a submission to this namespace belongs to.
    ///
    /// # Errors
    /// [`FileError::NotFound`] also for files of other tenants.
    pub async fn download(
        &self,
        caller: &Session,
        namespace: Option<&str>,
        sha256: &str,
    ) -> Result<Download, FileError> {
        let tenant = tenant(caller, namespace)?;
        self.kept()?;
        let file = self.store.scoped(&caller.readable()).file(&tenant.name, sha256).await?;
        let missing = || FileError::NotFound { sha256: sha256.to_owned(), tenant: tenant.name.clone() };
        self.of(file.ok_or_else(missing)?)
    }

    /// Returns a file of a live submission to a client that proves by the signature that it was meant for it.
    ///
    /// # Errors
    /// [`FileError::NotSigned`], [`FileError::Ended`]; after some time, that the database or the store is away.
    pub async fn fetch(&self, fetched: &Fetched<'_>) -> Result<Download, FileError> {
        let Fetched { submission, sha256, name, signature } = *fetched;
        let key = signed_with(&self.installation, &signed(submission, sha256, name), signature);
        let key = key.ok_or(FileError::NotSigned)?;
        let patience = Patience::of(self.kept()?.settings.patience);
        let file = loop {
            let file = self.store.used_file(submission, sha256).await.map_err(FileError::from);
            if !patience.allows(file.as_ref().err()).await {
                break file?;
            }
        };
        match file {
            // The key was replaced before there was such a URL.
            Some(UsedFile { accepted_at, .. }) if !key.counts_at(accepted_at) => Err(FileError::NotSigned),
            Some(UsedFile { file, ended: false, .. }) => self.of(file),
            Some(UsedFile { ended: true, .. }) | None => Err(FileError::Ended(submission.to_string())),
        }
    }

    fn of(&self, file: FileRecord) -> Result<Download, FileError> {
        let FileRecord { sha256, size, object } = file;
        let Kept { objects, settings, .. } = self.kept()?;
        let (objects, places, patience) = (objects.clone(), self.downloads.clone(), settings.patience);
        Ok(Download { sha256, size, object, objects, places, patience })
    }
}

impl Download {
    /// Returns a part of the content. It is read as fast as it is taken.
    ///
    /// # Errors
    /// The store is away, or too many files are being read, for longer than a driver would wait.
    pub async fn read(&self, range: Range<u64>) -> Result<BoxStream<'static, Result<Bytes, files::Error>>, FileError> {
        let place = timeout(self.patience, self.places.clone().acquire_owned()).await.map_err(|_| FileError::Busy)?;
        let place = place.map_err(|_| FileError::Busy)?;
        let patience = Patience::of(self.patience);
        let content = loop {
            let content = self.objects.read(&self.object, range.clone()).await.map_err(FileError::from);
            if !patience.allows(content.as_ref().err()).await {
                break content?;
            }
        };
        // The place is given back with the stream.
        Ok(content
            .inspect(move |part| {
                let _held = &place;
                match part {
                    Ok(bytes) => {
                        metrics().file_bytes.with(["sent"]).inc_by(bytes.len() as u64);
                    }
                    Err(error) => count_failure(error),
                }
            })
            .boxed())
    }
}

/// Returns the signature of a URL.
pub(super) fn signature_of(installation: &Installation, submission: &SubmissionId, sha256: &str, name: &str) -> String {
    signature::signature_of(installation, &signed(submission, sha256, name))
}

/// Returns what is signed.
fn signed(submission: &SubmissionId, sha256: &str, name: &str) -> String {
    format!("file of {submission}: {sha256}/{name}")
}

/// How long a call is still repeated while a server is away.
struct Patience(Instant);

impl Patience {
    fn of(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Waits before another try, if the error may pass and there is time left.
    async fn allows(&self, error: Option<&FileError>) -> bool {
        let may_pass = matches!(error, Some(FileError::Service(Error::Unavailable(_) | Error::FilesUnavailable(_))));
        if !may_pass || Instant::now() + PAUSE > self.0 {
            return false;
        }
        sleep(PAUSE).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_signature_is_valid_for_one_file_under_one_name_of_one_submission() {
        let ours = Installation::new(Uuid::nil(), vec![7; 32]);
        let id: SubmissionId = "driver-20260101000000-0001".parse().unwrap();
        let other: SubmissionId = "driver-20260101000000-0002".parse().unwrap();
        let right = signature_of(&ours, &id, "aa", "job.py");
        assert_eq!((right.len(), &right), (2 * signature::LENGTH, &signature_of(&ours, &id, "aa", "job.py")));
        for wrong in [
            signature_of(&ours, &other, "aa", "job.py"),
            signature_of(&ours, &id, "ab", "job.py"),
            signature_of(&ours, &id, "aa", "job.pyc"),
            signature_of(&Installation::new(Uuid::nil(), vec![8; 32]), &id, "aa", "job.py"),
        ] {
            assert_ne!(wrong, right);
        }
    }
}
