//! The files of a submission, when its driver is launched.

use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use super::{FileError, Files, download::signature_of, reference};
use crate::{
    cluster::Manifest,
    files,
    service::{
        error::{Error, error_chain},
        judgement::NoLaunch,
    },
    submission::SubmissionId,
};

/// The reason of a submission whose file is gone.
const MISSING: &str = "FileNotFound";

/// Why references can't be replaced.
pub(in crate::service) enum Unresolved {
    /// A file is gone.
    Missing(NoLaunch),
    /// The store is away: the submission waits.
    Away(String),
    Store(Error),
}

impl Files {
    /// Returns the signed URL under which the driver and the executors of a submission get a file; `None` if this gateway keeps none.
    /// The name is one of a URL, with escapes.
    pub fn url_of(&self, id: &SubmissionId, sha256: &str, name: &str) -> Option<String> {
        let base = self.kept.get()?.settings.base_url.trim_end_matches('/');
        let decoded = percent_decode_str(name).decode_utf8_lossy();
        let signature = signature_of(&self.installation, id, sha256, &decoded);
        Some(format!("{base}/v1/files/{sha256}/{id}/{signature}/{name}"))
    }

    /// Replaces the references to files in the objects of an attempt by signed URLs. They are the same with each try. The files of a
    /// launch that `is_begun` are not looked for: its driver waits already, and reports itself what it can't get.
    ///
    /// # Errors
    /// [`Unresolved`].
    pub(in crate::service) async fn resolve(
        &self,
        id: &SubmissionId,
        manifest: &mut Manifest,
        is_begun: bool,
    ) -> Result<(), Unresolved> {
        let Manifest { before, pod, beside, .. } = manifest;
        let mut objects: Vec<&mut Box<RawValue>> = before
            .iter_mut()
            .chain([pod])
            .chain(beside)
            .filter(|object| object.get().contains(reference::SCHEME))
            .collect();
        if objects.is_empty() {
            return Ok(());
        }
        let files = self.store.files_of(id).await.map_err(|error| Unresolved::Store(error.into()))?;
        if files.is_empty() {
            return Ok(());
        }
        let Some(kept) = self.kept.get() else { return Err(Unresolved::Away(FileError::Off.to_string())) };
        for file in files.iter().filter(|_| !is_begun) {
            match kept.objects.has(&file.object).await {
                Ok(true) => {}
                Ok(false) => {
                    let message = format!("the file {} is gone from its store", file.sha256);
                    return Err(Unresolved::Missing(NoLaunch { reason: MISSING, message }));
                }
                Err(error @ files::Error::Unavailable { .. }) => return Err(Unresolved::Away(error_chain(&error))),
                Err(error) => return Err(Unresolved::Store(error.into())),
            }
        }
        let url = |sha256: &str, name: &str| {
            let is_ours = files.iter().any(|file| file.sha256 == sha256);
            if is_ours { self.url_of(id, sha256, name) } else { None }
        };
        for object in &mut objects {
            let Some(text) = reference::replaced(object.get(), url) else { continue };
            let replaced = RawValue::from_string(text);
            let unreadable = |error| NoLaunch::unreadable(format!("writing the URLs of files: {error}"));
            **object = replaced.map_err(|error| Unresolved::Missing(unreadable(error)))?;
        }
        Ok(())
    }
}
