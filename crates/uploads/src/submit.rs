//! The files of a submission, while it is accepted and launched.

use std::collections::BTreeMap;

use futures::FutureExt;

use super::{FileError, Files, reference};
use sparkgate_cluster::Manifest;
use sparkgate_common::error::Error;
use sparkgate_core::ports::{Attachment, Attempt, Proposed, Resolution, Step};
use sparkgate_spark::{CreateSubmissionRequest, Refusal};
use sparkgate_store::FileRecord;
use sparkgate_submission::SubmissionId;

/// A submission keeps the files that its request refers to. Each launch replaces the references by URLs.
impl Attachment for Files {
    fn validate(&self, proposed: &Proposed<'_>) -> Result<(), Refusal> {
        reference::in_request(proposed.request).map(drop)
    }

    fn check<'a>(&'a self, proposed: &'a Proposed<'a>) -> Step<'a, ()> {
        let wanted = wanted(proposed)?;
        Some(async move { self.find(proposed.tenant, proposed.request, &wanted).await }.boxed())
    }

    fn attach<'a>(&'a self, id: &'a SubmissionId, proposed: &'a Proposed<'a>) -> Step<'a, ()> {
        let wanted = wanted(proposed)?;
        Some(async move { self.hold(id, proposed.tenant, proposed.request, &wanted).await }.boxed())
    }

    fn detach<'a>(&'a self, id: &'a SubmissionId) -> Step<'a, ()> {
        Some(async move { Ok(self.store.release_files_of(id).await?) }.boxed())
    }

    fn resolve<'a>(&'a self, attempt: &'a Attempt<'a>, manifest: &'a mut Manifest) -> Step<'a, Resolution> {
        reference::is_in_objects(manifest).then(|| self.replace_references(attempt, manifest).boxed())
    }
}

/// Returns the files that a valid request refers to with their names, if there are any.
fn wanted(proposed: &Proposed<'_>) -> Option<BTreeMap<String, String>> {
    reference::in_request(proposed.request).ok().filter(|wanted| !wanted.is_empty())
}

impl Files {
    /// Checks that the tenant has these files and that their store answers.
    ///
    /// # Errors
    /// [`Error::Refused`] for a file that isn't there; [`Error::FilesUnavailable`].
    async fn find(
        &self,
        tenant: &str,
        request: &CreateSubmissionRequest,
        wanted: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let Some(kept) = &self.kept else {
            return Err(Refusal::field("appResource", FileError::Off.to_string()).into());
        };
        let found = self.store.files_of_tenant(tenant, &wanted.keys().cloned().collect::<Vec<_>>()).await?;
        check_all(request, wanted, &found)?;
        for file in &found {
            if !kept.objects.has(&file.object).await? {
                return Err(missing(request, &file.sha256));
            }
        }
        Ok(())
    }

    /// Keeps files for a submission that is about to be accepted. They can't be deleted until it has ended.
    ///
    /// # Errors
    /// [`Error::Refused`] for a file that was deleted meanwhile.
    async fn hold(
        &self,
        id: &SubmissionId,
        tenant: &str,
        request: &CreateSubmissionRequest,
        wanted: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let found = self.store.use_files(id, tenant, wanted).await?;
        check_all(request, wanted, &found)
    }
}

/// Refuses a request if one of its files wasn't found.
fn check_all(
    request: &CreateSubmissionRequest,
    wanted: &BTreeMap<String, String>,
    found: &[FileRecord],
) -> Result<(), Error> {
    let absent = wanted.keys().find(|sha256| !found.iter().any(|file| file.sha256 == **sha256));
    absent.map_or(Ok(()), |sha256| Err(missing(request, sha256)))
}

fn missing(request: &CreateSubmissionRequest, sha256: &str) -> Error {
    let in_list = request.spark_properties.iter().find(|(_, value)| value.contains(sha256));
    let field = match in_list {
        Some((key, _)) if !request.app_resource.contains(sha256) => Refusal::property_field(key),
        _ => "appResource".to_owned(),
    };
    Refusal::field(field, format!("the file {sha256} isn't here, or no longer: upload it with PUT /v1/files/{sha256}"))
        .into()
}
