//! The use cases "list files" and "delete a file", for members of a tenant.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{FileError, Files, tenant};
use sparkgate_common::{detached::to_its_end, error::Error};
use sparkgate_metrics::metrics;
use sparkgate_store::DeletedFile;
use sparkgate_tenancy::session::Session;

/// A file of a list.
#[derive(Debug, Clone)]
pub struct ListedFile {
    pub file: sparkgate_store::ListedFile,
    /// When it is deleted if no submission uses it until then; `None` while one does, and if files are kept for ever.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A page of a tenant's files.
#[derive(Debug)]
pub struct FilePage {
    pub tenant: String,
    /// The newest first; one more than was asked for if there is another page.
    pub files: Vec<ListedFile>,
}

impl Files {
    /// Returns the files of the tenant that a submission to this namespace belongs to, the newest first, and one more than `limit`.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn list(
        &self,
        caller: &Session,
        namespace: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<FilePage, FileError> {
        let tenant = tenant(caller, namespace)?;
        let ttl = self.kept()?.settings.unused_ttl;
        let files = self.store.scoped(&caller.readable()).files(&tenant.name, before, limit.saturating_add(1)).await?;
        let listed = files.into_iter().map(|file| {
            let ttl = ttl.filter(|_| file.submissions == 0).and_then(|ttl| chrono::TimeDelta::from_std(ttl).ok());
            let expires_at = ttl.and_then(|ttl| file.last_used_at.checked_add_signed(ttl));
            ListedFile { file, expires_at }
        });
        Ok(FilePage { tenant: tenant.name.clone(), files: listed.collect() })
    }

    /// Deletes a file of the tenant that a submission to this namespace belongs to.
    ///
    /// # Errors
    /// [`FileError::Used`] while a live submission uses it; [`Error::Denied`] for that of another principal, unless the caller is an
    /// operator.
    pub async fn delete(
        self: &Arc<Self>,
        caller: &Session,
        namespace: Option<String>,
        sha256: String,
    ) -> Result<(), FileError> {
        let (this, caller) = (self.clone(), caller.clone());
        // The object is deleted even if the client disconnects.
        let delete = async move { this.delete_with_object(&caller, namespace.as_deref(), &sha256).await };
        to_its_end(delete, |error| Error::BrokenOff(error).into()).await
    }

    async fn delete_with_object(
        &self,
        caller: &Session,
        namespace: Option<&str>,
        sha256: &str,
    ) -> Result<(), FileError> {
        let tenant = tenant(caller, namespace)?;
        let kept = self.kept()?;
        let store = self.store.scoped(&caller.readable());
        match store.delete_file(&tenant.name, sha256, &caller.killable()).await? {
            DeletedFile::Deleted(object) => {
                tracing::info!(tenant = tenant.name, sha256, "file deleted");
                metrics().files_deleted.with(["requested"]).inc();
                kept.delete(&object).await;
                Ok(())
            }
            DeletedFile::Used(submissions) => Err(FileError::Used(submissions)),
            DeletedFile::Foreign => {
                let reason = "another principal uploaded this file: an operator of its tenant can delete it";
                Err(Error::Denied(reason.to_owned()).into())
            }
            DeletedFile::None => Err(FileError::NotFound { sha256: sha256.to_owned(), tenant: tenant.name.clone() }),
        }
    }
}
