//! The files of a submission, when its driver is launched.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use super::{FileError, Files, Kept, download::signature_of, reference};
use crate::{
    cluster::Manifest,
    files::{self, FileStore},
    service::{
        error::{Error, count_failure, error_chain},
        judgement::NoLaunch,
    },
    store::FileRecord,
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
        let base = self.kept.as_ref()?.settings.base_url.trim_end_matches('/');
        let decoded = percent_decode_str(name).decode_utf8_lossy();
        let signature = signature_of(&self.installation, id, sha256, &decoded);
        Some(format!("{base}/v1/files/{sha256}/{id}/{signature}/{name}"))
    }

    /// Returns the URI of a file in its store, if drivers read the store themselves.
    fn uri_of(&self, file: &FileRecord, name: &str) -> Option<String> {
        let Kept { objects, settings, .. } = self.kept.as_ref()?;
        let decoded = percent_decode_str(name).decode_utf8_lossy();
        let base = settings.driver_url.as_ref().filter(|_| FileStore::copies(file.size, &decoded))?;
        Some(format!("{}/{}", base.trim_end_matches('/'), objects.place_by_name(&file.object, name)))
    }

    /// Makes sure that drivers find the files in their store, each under its name.
    async fn copy_by_name(
        kept: &Kept,
        files: &[FileRecord],
        names: &BTreeSet<(String, String)>,
    ) -> Result<(), files::Error> {
        for (sha256, name) in names {
            let name = percent_decode_str(name).decode_utf8_lossy();
            let file = files.iter().find(|file| file.sha256 == *sha256);
            if let Some(file) = file.filter(|file| FileStore::copies(file.size, &name)) {
                kept.objects.copy_by_name(&file.object, &name).await?;
            }
        }
        Ok(())
    }

    /// Replaces the references to files in the objects of an attempt by signed URLs, or by URIs of the store. They are the same with
    /// each try. The files of a launch that `is_begun` are not looked for: its driver waits already, and reports itself what it can't
    /// get.
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
        let Some(kept) = &self.kept else { return Err(Unresolved::Away(FileError::Off.to_string())) };
        let away = |error: files::Error| {
            count_failure(&error);
            Unresolved::Away(error_chain(&error))
        };
        for file in files.iter().filter(|_| !is_begun) {
            match kept.objects.has(&file.object).await {
                Ok(true) => {}
                Ok(false) => return Err(gone(&file.sha256)),
                Err(error @ files::Error::Unavailable { .. }) => return Err(away(error)),
                Err(error) => return Err(Unresolved::Store(error.into())),
            }
        }
        if kept.settings.driver_url.is_some() && !is_begun {
            let mut names = BTreeSet::new();
            for object in &objects {
                reference::replaced(object.get(), |sha256, name| {
                    names.insert((sha256.to_owned(), name.to_owned()));
                    None
                });
            }
            match Self::copy_by_name(kept, &files, &names).await {
                Ok(()) => {}
                Err(files::Error::Missing { key, .. }) => {
                    let file = files.iter().find(|file| file.object == key);
                    return Err(gone(file.map_or(key.as_str(), |file| file.sha256.as_str())));
                }
                Err(error) => return Err(away(error)),
            }
        }
        let url = |sha256: &str, name: &str| {
            let file = files.iter().find(|file| file.sha256 == sha256)?;
            self.uri_of(file, name).or_else(|| self.url_of(id, sha256, name))
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

/// Returns the end of a submission whose file is gone.
fn gone(file: &str) -> Unresolved {
    let message = format!("the file {file} is gone from its store");
    Unresolved::Missing(NoLaunch { reason: MISSING, message })
}
