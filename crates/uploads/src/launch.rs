//! The files of a submission, when its driver is launched.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use super::{FileError, Files, Kept, download::signature_of, reference};
use sparkgate_cluster::Manifest;
use sparkgate_common::error::{Error, count_failure, error_chain};
use sparkgate_core::ports::{Attempt, NoLaunch, Resolution, Wait};
use sparkgate_files::{self, FileStore};
use sparkgate_store::FileRecord;
use sparkgate_submission::SubmissionId;

/// The reason of a submission whose file is gone.
const MISSING: &str = "FileNotFound";
/// The reason of a submission that waits because the store of its files is away.
const UNAVAILABLE: &str = "FilesUnavailable";

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
    ) -> Result<(), sparkgate_files::Error> {
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
    /// each try. The files of a launch that has begun are not looked for: its driver waits already, and reports itself what it can't
    /// get.
    ///
    /// # Errors
    /// The database or the store fails.
    pub(super) async fn replace_references(
        &self,
        attempt: &Attempt<'_>,
        manifest: &mut Manifest,
    ) -> Result<Resolution, Error> {
        let &Attempt { id, is_begun, .. } = attempt;
        let Manifest { before, pod, beside, .. } = manifest;
        let mut objects: Vec<&mut Box<RawValue>> = before
            .iter_mut()
            .chain([pod])
            .chain(beside)
            .filter(|object| object.get().contains(reference::SCHEME))
            .collect();
        let files = self.store.files_of(id).await?;
        if files.is_empty() {
            return Ok(Resolution::Ready);
        }
        let waits = |message| Ok(Resolution::Wait(Wait { reason: UNAVAILABLE, result: "no_files", message }));
        let away = |error: sparkgate_files::Error| {
            count_failure(&error);
            waits(error_chain(&error))
        };
        let Some(kept) = &self.kept else { return waits(FileError::Off.to_string()) };
        for file in files.iter().filter(|_| !is_begun) {
            match kept.objects.has(&file.object).await {
                Ok(true) => {}
                Ok(false) => return Ok(gone(&file.sha256)),
                Err(error @ sparkgate_files::Error::Unavailable { .. }) => return away(error),
                Err(error) => return Err(error.into()),
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
                Err(sparkgate_files::Error::Missing { key, .. }) => {
                    let file = files.iter().find(|file| file.object == key);
                    return Ok(gone(file.map_or(key.as_str(), |file| file.sha256.as_str())));
                }
                Err(error) => return away(error),
            }
        }
        let url = |sha256: &str, name: &str| {
            let file = files.iter().find(|file| file.sha256 == sha256)?;
            self.uri_of(file, name).or_else(|| self.url_of(id, sha256, name))
        };
        for object in &mut objects {
            let Some(text) = reference::replaced(object.get(), url) else { continue };
            match RawValue::from_string(text) {
                Ok(replaced) => **object = replaced,
                Err(error) => {
                    let why = NoLaunch::unreadable(format!("writing the URLs of files: {error}"));
                    return Ok(Resolution::Refused(why));
                }
            }
        }
        Ok(Resolution::Ready)
    }
}

/// Returns the end of a submission whose file is gone.
fn gone(file: &str) -> Resolution {
    let message = format!("the file {file} is gone from its store");
    Resolution::Refused(NoLaunch { reason: MISSING, message })
}
