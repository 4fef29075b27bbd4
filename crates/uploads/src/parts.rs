//! Uploads that can be continued: what arrives is kept in parts, each an object of its own. The request that completes the upload
//! joins them, as if all of it had arrived at once.

use std::fmt;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::time::sleep;

use super::{
    FileError, Files, Kept, count,
    pace::Progress,
    tenant,
    upload::{Existing, Next, PAUSE, TRIES, Uploaded, next, outcome},
};
use sparkgate_access::Tenant;
use sparkgate_files::{self, FileStore, Upload};
use sparkgate_store::{self, AddedPart, FilePart, FileUpload};
use sparkgate_tenancy::session::Session;

/// The most parts of one upload.
const MOST: u64 = 1000;

/// A part of an upload.
#[derive(Debug, Clone, Copy)]
pub struct NewPart<'a> {
    /// Of the whole file.
    pub sha256: &'a str,
    /// Where the part begins.
    pub offset: u64,
    /// The announced length of the part.
    pub length: Option<u64>,
    /// Whether the file ends with it.
    pub is_last: bool,
}

/// What became of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resumed {
    /// All of the file has arrived, and it is kept.
    Complete(Uploaded),
    /// So many bytes have arrived.
    Incomplete(u64),
    /// The upload has arrived up to here, and the part begins elsewhere: nothing of it is kept.
    Elsewhere(u64),
}

/// Where a part went.
enum Added {
    At(u64),
    Elsewhere,
}

impl Files {
    /// Returns how many bytes of an upload have arrived from the caller.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn received(&self, caller: &Session, namespace: Option<&str>, sha256: &str) -> Result<u64, FileError> {
        let tenant = tenant(caller, namespace)?;
        self.kept()?;
        let upload = upload_of(tenant, caller, sha256);
        Ok(self.store.scoped(&caller.readable()).received(upload).await?.bytes)
    }

    /// Continues an upload. If the client disconnects, what has arrived is kept.
    ///
    /// The future must not be dropped before it is ready.
    ///
    /// # Errors
    /// [`FileError`]. An upload that is too long, or whose content has another hash, is deleted.
    pub async fn resume<E: fmt::Display>(
        &self,
        caller: &Session,
        namespace: Option<&str>,
        part: NewPart<'_>,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Resumed, FileError> {
        let resumed = self.resume_once(caller, namespace, part, content).await;
        match &resumed {
            Ok(Resumed::Complete(uploaded)) => count(if uploaded.existing { "existing" } else { "kept" }),
            Ok(Resumed::Incomplete(_)) => count("part"),
            Ok(Resumed::Elsewhere(_)) => count("elsewhere"),
            Err(error) => count(error.outcome()),
        }
        resumed
    }

    async fn resume_once<E: fmt::Display>(
        &self,
        caller: &Session,
        namespace: Option<&str>,
        part: NewPart<'_>,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Resumed, FileError> {
        let tenant = tenant(caller, namespace)?;
        let kept = self.kept()?;
        kept.check_owner().await?;
        let NewPart { sha256, offset, length, is_last } = part;
        let largest = kept.settings.largest;
        if offset.saturating_add(length.unwrap_or(0)) > largest {
            return Err(FileError::TooLarge(largest));
        }
        if let Existing::Here(uploaded) = self.existing(kept, tenant, sha256).await? {
            return Ok(Resumed::Complete(uploaded));
        }
        let _place = self.place(tenant, caller).await?;
        let lost = match self.existing(kept, tenant, sha256).await? {
            Existing::Here(uploaded) => return Ok(Resumed::Complete(uploaded)),
            Existing::Lost(object) => Some(object),
            Existing::None => None,
        };
        let upload = upload_of(tenant, caller, sha256);
        let received = self.store.scoped(&caller.readable()).received(upload).await?;
        if received.bytes != offset {
            return Ok(Resumed::Elsewhere(received.bytes));
        }
        if received.parts >= MOST {
            return Err(FileError::TooManyParts(received.parts));
        }
        self.check_quota(tenant, length.unwrap_or(0)).await?;
        let at = match self.receive_parts(kept, tenant, upload, offset, content).await {
            Ok(Added::At(at)) => at,
            Ok(Added::Elsewhere) => return self.elsewhere(kept, tenant, caller, sha256).await,
            Err(error) => {
                if matches!(error, FileError::TooLarge(_)) {
                    self.discard(kept, upload).await;
                }
                return Err(error);
            }
        };
        if is_last {
            self.complete(kept, tenant, caller, sha256, at, lost.as_deref()).await
        } else {
            Ok(Resumed::Incomplete(at))
        }
    }

    /// Keeps what arrives, part by part, and returns where it ends.
    async fn receive_parts<E: fmt::Display>(
        &self,
        kept: &Kept,
        tenant: &Tenant,
        upload: FileUpload<'_>,
        mut at: u64,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Added, FileError> {
        let largest = kept.settings.largest;
        let mut content = std::pin::pin!(content);
        let mut part = kept.objects.begin(&tenant.name);
        let mut progress = Progress::of(kept.settings.pace);
        loop {
            let broken = match next(&mut progress, &mut content).await {
                Next::Bytes(bytes) => {
                    if at + part.size() + bytes.len() as u64 > largest {
                        part.abort().await;
                        return Err(FileError::TooLarge(largest));
                    }
                    if let Err(error) = part.write(bytes).await {
                        part.abort().await;
                        return Err(error.into());
                    }
                    if part.size() < kept.settings.part {
                        continue;
                    }
                    let full = std::mem::replace(&mut part, kept.objects.begin(&tenant.name));
                    match self.add_part(kept, tenant, upload, at, full).await? {
                        Added::At(next) => at = next,
                        Added::Elsewhere => return Ok(Added::Elsewhere),
                    }
                    continue;
                }
                Next::End => None,
                Next::Broken(why) => Some(Some(why)),
                Next::TooSlow => Some(None),
            };
            let added = self.add_part(kept, tenant, upload, at, part).await?;
            return match (broken, &added) {
                (None, _) => Ok(added),
                (Some(why), added) => {
                    let arrived = if let Added::At(at) = added { *at } else { at };
                    Err(match why {
                        Some(why) => FileError::Broken(arrived, why),
                        None => FileError::TooSlow(arrived, kept.settings.pace),
                    })
                }
            };
        }
    }

    /// Makes an object a part of an upload, or deletes it.
    async fn add_part(
        &self,
        kept: &Kept,
        tenant: &Tenant,
        upload: FileUpload<'_>,
        offset: u64,
        part: Upload,
    ) -> Result<Added, FileError> {
        if part.size() == 0 {
            part.abort().await;
            return Ok(Added::At(offset));
        }
        let size = part.size();
        let part = FilePart { object: part.finish().await?, size };
        let most = tenant.limits.file_bytes;
        let mut added = self.store.add_file_part(upload, offset, &part, most).await;
        for _ in 0..TRIES {
            if matches!(added, Err(sparkgate_store::Error::Unavailable { .. })) {
                sleep(PAUSE).await;
                added = self.store.add_file_part(upload, offset, &part, most).await;
            }
        }
        let result = match added {
            Ok(AddedPart::Added(at)) => return Ok(Added::At(at)),
            Ok(AddedPart::Elsewhere) => Ok(Added::Elsewhere),
            Ok(AddedPart::Full(bytes)) => {
                Err(FileError::Quota { tenant: tenant.name.clone(), bytes, most: most.unwrap_or_default() })
            }
            // Nothing was recorded.
            Err(error @ sparkgate_store::Error::Unavailable { .. }) => Err(error.into()),
            // The object may be a part: it is swept if it isn't.
            Err(error) => return Err(error.into()),
        };
        kept.delete(&part.object).await;
        result
    }

    /// Joins the parts of an upload whose content has arrived, up to `size`.
    async fn complete(
        &self,
        kept: &Kept,
        tenant: &Tenant,
        caller: &Session,
        sha256: &str,
        size: u64,
        lost: Option<&str>,
    ) -> Result<Resumed, FileError> {
        let upload = upload_of(tenant, caller, sha256);
        let parts = self.store.file_parts(upload).await?;
        if parts.iter().map(|part| part.size).sum::<u64>() != size {
            // Another request has completed the upload, or deleted it.
            return self.elsewhere(kept, tenant, caller, sha256).await;
        }
        let mut whole = kept.objects.begin(&tenant.name);
        match join(&kept.objects, &mut whole, &parts).await {
            Ok(()) => {}
            Err(error) => {
                whole.abort().await;
                return match error {
                    // Another request has completed the upload, or the store has lost a part.
                    sparkgate_files::Error::Missing { .. } => {
                        let found = self.elsewhere(kept, tenant, caller, sha256).await?;
                        if let Resumed::Complete(_) = found {
                            return Ok(found);
                        }
                        self.discard(kept, upload).await;
                        Ok(Resumed::Elsewhere(0))
                    }
                    error @ (sparkgate_files::Error::Unavailable { .. } | sparkgate_files::Error::Foreign { .. }) => {
                        Err(error.into())
                    }
                };
            }
        }
        let uploaded = self.keep(kept, tenant, caller, whole, Some(sha256), lost).await;
        if let Err(FileError::Mismatch { .. }) = uploaded {
            self.discard(kept, upload).await;
        }
        tracing::debug!(sha256, parts = parts.len(), outcome = outcome(&uploaded), "the parts of a file are joined");
        uploaded.map(Resumed::Complete)
    }

    /// Returns where an upload stands that another request has continued.
    async fn elsewhere(
        &self,
        kept: &Kept,
        tenant: &Tenant,
        caller: &Session,
        sha256: &str,
    ) -> Result<Resumed, FileError> {
        if let Existing::Here(uploaded) = self.existing(kept, tenant, sha256).await? {
            return Ok(Resumed::Complete(uploaded));
        }
        let upload = upload_of(tenant, caller, sha256);
        let received = self.store.scoped(&caller.readable()).received(upload).await?;
        Ok(Resumed::Elsewhere(received.bytes))
    }

    /// Deletes an upload that can't be completed. What can't be deleted now is deleted after a day.
    async fn discard(&self, kept: &Kept, upload: FileUpload<'_>) {
        match self.store.delete_file_upload(upload).await {
            Ok(parts) => kept.delete_all(&parts).await,
            Err(error) => {
                tracing::debug!("the parts of an upload are left: {}", sparkgate_common::error::error_chain(&error));
            }
        }
    }
}

/// Returns the upload of a file by a caller.
fn upload_of<'a>(tenant: &'a Tenant, caller: &'a Session, sha256: &'a str) -> FileUpload<'a> {
    FileUpload { tenant: &tenant.name, sha256, principal: caller.principal().subject() }
}

/// Writes the content of parts to an upload.
async fn join(objects: &FileStore, whole: &mut Upload, parts: &[FilePart]) -> Result<(), sparkgate_files::Error> {
    for part in parts {
        let mut content = objects.read(&part.object, 0..part.size).await?;
        while let Some(bytes) = content.next().await {
            whole.write(bytes?).await?;
        }
    }
    Ok(())
}
