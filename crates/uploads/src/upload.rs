//! The use case "upload": a file is kept once all of it has arrived and has the hash that it was announced with.

use std::{fmt::Write, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::time::{sleep, timeout};

use super::{
    FileError, Files, Kept, count,
    pace::{Pace, Progress},
    tenant,
};
use sparkgate_access::Tenant;
use sparkgate_common::{error::error_chain, shares::Place};
use sparkgate_files::{Digest, Upload};
use sparkgate_metrics::metrics;
use sparkgate_store::{self, AddedFile, FileRecord, NewFile};
use sparkgate_tenancy::session::Session;

/// How long an upload waits for a place.
pub(super) const WAIT: Duration = Duration::from_secs(30);
/// How often a file is recorded again while the database is away, and the pause before.
pub(super) const TRIES: u32 = 3;
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A file that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploaded {
    pub tenant: String,
    pub sha256: String,
    pub size: u64,
    /// Whether the tenant had it already: its content was not read, or not needed.
    pub existing: bool,
}

impl Files {
    /// Keeps the content of a file for the tenant that a submission to this namespace belongs to. `length` is the announced length.
    ///
    /// A client that disconnects ends the content with an error. The future must not be dropped before it is ready.
    ///
    /// # Errors
    /// [`FileError`]: nothing is kept.
    pub async fn upload<E: std::fmt::Display>(
        &self,
        caller: &Session,
        namespace: Option<&str>,
        sha256: &str,
        length: Option<u64>,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Uploaded, FileError> {
        let uploaded = self.upload_once(caller, namespace, sha256, length, content).await;
        count(outcome(&uploaded));
        uploaded
    }

    async fn upload_once<E: std::fmt::Display>(
        &self,
        caller: &Session,
        namespace: Option<&str>,
        sha256: &str,
        length: Option<u64>,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Uploaded, FileError> {
        let tenant = tenant(caller, namespace)?;
        let kept = self.kept()?;
        kept.check_owner().await?;
        let largest = kept.settings.largest;
        if length.is_some_and(|length| length > largest) {
            return Err(FileError::TooLarge(largest));
        }
        // A file that is here needs no place. Another upload of it may end while this one waits.
        if let Existing::Here(uploaded) = self.existing(kept, tenant, sha256).await? {
            return Ok(uploaded);
        }
        let _place = self.place(tenant, caller).await?;
        let lost = match self.existing(kept, tenant, sha256).await? {
            Existing::Here(uploaded) => return Ok(uploaded),
            Existing::Lost(object) => Some(object),
            Existing::None => None,
        };
        self.check_quota(tenant, length.unwrap_or(0)).await?;
        let mut upload = kept.objects.begin(&tenant.name);
        let limits = (length.unwrap_or(largest), largest, kept.settings.pace);
        if let Err(error) = receive(&mut upload, limits, content).await {
            upload.abort().await;
            return Err(error);
        }
        self.keep(kept, tenant, caller, upload, Some(sha256), lost.as_deref()).await
    }

    /// Waits for a place of an upload, without a connection of the database.
    pub(super) async fn place(&self, tenant: &Tenant, caller: &Session) -> Result<Place, FileError> {
        let place = self.uploads.acquire(&tenant.name, caller.principal().subject());
        timeout(WAIT, place).await.map_err(|_| FileError::Busy)
    }

    /// Makes what was uploaded a file, if it has the hash that was announced. `lost` is the object that it replaces.
    pub(super) async fn keep(
        &self,
        kept: &Kept,
        tenant: &Tenant,
        caller: &Session,
        upload: Upload,
        announced: Option<&str>,
        lost: Option<&str>,
    ) -> Result<Uploaded, FileError> {
        let actual = hex(&upload.digest());
        if let Some(expected) = announced.filter(|expected| *expected != actual) {
            upload.abort().await;
            return Err(FileError::Mismatch { expected: expected.to_owned(), actual });
        }
        let size = upload.size();
        let object = upload.finish().await?;
        let record = FileRecord { sha256: actual, size, object };
        let principal = caller.principal().subject().to_owned();
        let new = NewFile { tenant: tenant.name.clone(), principal, record };
        let uploaded = self.add(kept, tenant, new, lost).await?;
        // Nothing is left to continue.
        match self.store.delete_uploads_of_file(&tenant.name, &uploaded.sha256).await {
            Ok(parts) => kept.delete_all(&parts).await,
            // They are deleted after a day.
            Err(error) => tracing::debug!("the parts of an upload are left: {}", error_chain(&error)),
        }
        Ok(uploaded)
    }

    /// Makes an object the content of its file, or deletes it.
    async fn add(&self, kept: &Kept, tenant: &Tenant, new: NewFile, lost: Option<&str>) -> Result<Uploaded, FileError> {
        let most = tenant.limits.file_bytes;
        let FileRecord { sha256, size, object } = &new.record;
        let uploaded =
            |existing| Uploaded { tenant: tenant.name.clone(), sha256: sha256.clone(), size: *size, existing };
        let mut added = self.store.add_file(&new, most, lost).await;
        for _ in 0..TRIES {
            // Worth another try: the content has arrived.
            if matches!(added, Err(sparkgate_store::Error::Unavailable { .. })) {
                sleep(PAUSE).await;
                added = self.store.add_file(&new, most, lost).await;
            }
        }
        let result = match added {
            Ok(AddedFile::Added) => {
                tracing::info!(tenant = tenant.name, sha256, size, "file uploaded");
                return Ok(uploaded(false));
            }
            Ok(AddedFile::Existing) => Ok(uploaded(true)),
            Ok(AddedFile::Full(bytes)) => {
                Err(FileError::Quota { tenant: tenant.name.clone(), bytes, most: most.unwrap_or_default() })
            }
            // Nothing was recorded.
            Err(error @ sparkgate_store::Error::Unavailable { .. }) => Err(error.into()),
            // The object may be the file: it is swept if it isn't.
            Err(error) => return Err(error.into()),
        };
        kept.delete(object).await;
        result
    }

    /// Refuses an upload that the quota of its tenant has no room for.
    pub(super) async fn check_quota(&self, tenant: &Tenant, length: u64) -> Result<(), FileError> {
        let Some(most) = tenant.limits.file_bytes else { return Ok(()) };
        let bytes = self.store.file_bytes(&tenant.name).await?;
        if bytes + length > most {
            return Err(FileError::Quota { tenant: tenant.name.clone(), bytes, most });
        }
        Ok(())
    }

    pub(super) async fn existing(&self, kept: &Kept, tenant: &Tenant, sha256: &str) -> Result<Existing, FileError> {
        let Some(FileRecord { size, object, .. }) = self.store.touch_file(&tenant.name, sha256).await? else {
            return Ok(Existing::None);
        };
        if !kept.objects.has(&object).await? {
            tracing::warn!(tenant = tenant.name, sha256, object, "the object of a file is gone from its store");
            return Ok(Existing::Lost(object));
        }
        Ok(Existing::Here(Uploaded { tenant: tenant.name.clone(), sha256: sha256.to_owned(), size, existing: true }))
    }
}

/// A file before it is uploaded.
pub(super) enum Existing {
    Here(Uploaded),
    /// Its object was deleted by another program than this gateway: the upload replaces it.
    Lost(String),
    None,
}

/// Returns the outcome of an upload, for metrics.
pub(super) fn outcome(uploaded: &Result<Uploaded, FileError>) -> &'static str {
    match uploaded {
        Ok(Uploaded { existing: false, .. }) => "kept",
        Ok(Uploaded { existing: true, .. }) => "existing",
        Err(error) => error.outcome(),
    }
}

/// What a client sends next.
pub(super) enum Next {
    Bytes(Bytes),
    End,
    /// It has gone.
    Broken(String),
    /// It sends too little.
    TooSlow,
}

/// Waits for what a client sends next.
pub(super) async fn next<E: std::fmt::Display>(
    progress: &mut Progress,
    content: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
) -> Next {
    match progress.wait(content.next()).await {
        Err(_) => Next::TooSlow,
        Ok(Some(Ok(bytes))) => {
            progress.moved(bytes.len());
            metrics().file_bytes.with(["received"]).inc_by(bytes.len() as u64);
            Next::Bytes(bytes)
        }
        Ok(Some(Err(error))) => Next::Broken(error.to_string()),
        Ok(None) => Next::End,
    }
}

/// Writes content to an upload: no more than the announced length, nor than the largest.
pub(super) async fn receive<E: std::fmt::Display>(
    upload: &mut Upload,
    (length, largest, pace): (u64, u64, Pace),
    content: impl Stream<Item = Result<Bytes, E>> + Send,
) -> Result<(), FileError> {
    let mut content = std::pin::pin!(content);
    let mut progress = Progress::of(pace);
    loop {
        let arrived = upload.size();
        let bytes = match next(&mut progress, &mut content).await {
            Next::Bytes(bytes) => bytes,
            Next::End => return Ok(()),
            Next::Broken(why) => return Err(FileError::Broken(arrived, why)),
            Next::TooSlow => return Err(FileError::TooSlow(arrived, pace)),
        };
        if arrived + bytes.len() as u64 > length.min(largest) {
            return Err(FileError::TooLarge(largest));
        }
        upload.write(bytes).await?;
    }
}

pub(super) fn hex(digest: &Digest) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
