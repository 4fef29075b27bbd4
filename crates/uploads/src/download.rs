//! The use cases "download", for members of a tenant, and "fetch", for the bearer of a signed URL.

use std::{ops::Range, time::Duration};

use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{BoxStream, poll_fn},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use super::{
    FileError, Files, Kept,
    pace::{Pace, Progress},
    tenant,
};
use crate::signature::{self, signed_with};
use sparkgate_common::{
    error::{Error, count_failure},
    shares::Shares,
};
use sparkgate_files::{self, FileStore};
use sparkgate_metrics::metrics;
use sparkgate_store::{FileRecord, UsedFile};
use sparkgate_submission::{Installation, SubmissionId};
use sparkgate_tenancy::session::Session;

const PAUSE: Duration = Duration::from_millis(500);
/// What is handed to the connection at once.
const PIECE: usize = 64 << 10;

/// A file that may be read.
#[derive(Debug)]
pub struct Download {
    pub sha256: String,
    pub size: u64,
    object: String,
    objects: FileStore,
    places: Shares,
    tenant: String,
    /// The submission or the caller that reads it.
    reader: String,
    patience: Duration,
    pace: Pace,
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
        self.of(file.ok_or_else(missing)?, tenant.name.clone(), caller.principal().subject().to_owned())
    }

    /// Returns a file of a live submission to a client that proves by the signature that it was meant for it.
    ///
    /// # Errors
    /// [`FileError::NotSigned`], [`FileError::Ended`]; after some time, that the database or the store is away.
    pub async fn fetch(&self, fetched: &Fetched<'_>) -> Result<Download, FileError> {
        let Fetched { submission, sha256, name, signature } = *fetched;
        let key = signed_with(&self.installation, &signed(submission, sha256, name), signature);
        let key = key.ok_or(FileError::NotSigned)?;
        let patience = self.kept()?.settings.patience;
        let due = timeout(patience, self.fetches.wait(submission.as_str()));
        due.await.map_err(|_| FileError::Busy)?;
        let patience = Patience::of(patience);
        let file = loop {
            let file = self.store.used_file(submission, sha256).await.map_err(FileError::from);
            if !patience.allows(file.as_ref().err()).await {
                break file?;
            }
        };
        match file {
            // The key was replaced before there was such a URL.
            Some(UsedFile { accepted_at, .. }) if !key.counts_at(accepted_at) => Err(FileError::NotSigned),
            Some(UsedFile { file, owner, ended: false, .. }) => self.of(file, owner, submission.to_string()),
            Some(UsedFile { ended: true, .. }) | None => Err(FileError::Ended(submission.to_string())),
        }
    }

    fn of(&self, file: FileRecord, tenant: String, reader: String) -> Result<Download, FileError> {
        let FileRecord { sha256, size, object } = file;
        let Kept { objects, settings, .. } = self.kept()?;
        let (objects, places) = (objects.clone(), self.downloads.clone());
        let (patience, pace) = (settings.patience, settings.pace);
        Ok(Download { sha256, size, object, objects, places, tenant, reader, patience, pace })
    }
}

impl Download {
    /// Returns a part of the content. It is read as fast as it is taken, and breaks off if that is too slow.
    ///
    /// # Errors
    /// The store is away, or too many files are being read, for longer than a driver would wait.
    pub async fn read(
        &self,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, sparkgate_files::Error>>, FileError> {
        let place = timeout(self.patience, self.places.acquire(&self.tenant, &self.reader)).await;
        let place = place.map_err(|_| FileError::Busy)?;
        let patience = Patience::of(self.patience);
        let mut content = loop {
            let content = self.objects.read(&self.object, range.clone()).await.map_err(FileError::from);
            if !patience.allows(content.as_ref().err()).await {
                break content?;
            }
        };
        // A reader that is too slow isn't noticed by a stream, which isn't asked for more.
        let (parts, mut taken) = mpsc::channel(1);
        let (mut progress, sha256, reader) = (Progress::of(self.pace), self.sha256.clone(), self.reader.clone());
        tokio::spawn(async move {
            let _place = place;
            while let Some(read) = content.next().await {
                let mut part = match read {
                    Ok(part) => part,
                    Err(error) => {
                        count_failure(&error);
                        let _ = progress.wait(parts.send(Err(error))).await;
                        return;
                    }
                };
                while !part.is_empty() {
                    let piece = part.split_to(part.len().min(PIECE));
                    let bytes = piece.len();
                    match progress.wait(parts.send(Ok(piece))).await {
                        Ok(Ok(())) => progress.moved(bytes),
                        Ok(Err(_)) => return,
                        Err(_) => {
                            return tracing::debug!(sha256, reader, "a reader of a file is too slow: it gets no more");
                        }
                    }
                    metrics().file_bytes.with(["sent"]).inc_by(bytes as u64);
                }
            }
        });
        Ok(poll_fn(move |context| taken.poll_recv(context)).boxed())
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
