//! The files of a submission, while it is accepted.

use super::{FileError, Files, reference};
use crate::{
    service::error::Error,
    spark::{CreateSubmissionRequest, Refusal},
    store::FileRecord,
    submission::SubmissionId,
};

impl Files {
    /// Returns the files that a request refers to, after a check that the tenant has them and that their store answers.
    ///
    /// # Errors
    /// [`Error::Refused`] for a malformed reference and for a file that isn't there; [`Error::FilesUnavailable`].
    pub(in crate::service) async fn of_request(
        &self,
        tenant: &str,
        request: &CreateSubmissionRequest,
    ) -> Result<Vec<String>, Error> {
        let wanted: Vec<String> = reference::of_request(request)?.into_iter().collect();
        if wanted.is_empty() {
            return Ok(wanted);
        }
        let Some(kept) = &self.kept else {
            return Err(Refusal::field("appResource", FileError::Off.to_string()).into());
        };
        let found = self.store.files_of_tenant(tenant, &wanted).await?;
        check_all(request, &wanted, &found)?;
        for file in &found {
            if !kept.objects.has(&file.object).await? {
                return Err(missing(request, &file.sha256));
            }
        }
        Ok(wanted)
    }

    /// Keeps files for a submission that is about to be accepted. They can't be deleted until it has ended.
    ///
    /// # Errors
    /// [`Error::Refused`] for a file that was deleted meanwhile.
    pub(in crate::service) async fn hold(
        &self,
        id: &SubmissionId,
        tenant: &str,
        wanted: &[String],
        request: &CreateSubmissionRequest,
    ) -> Result<(), Error> {
        if wanted.is_empty() {
            return Ok(());
        }
        let found = self.store.use_files(id, tenant, wanted).await?;
        check_all(request, wanted, &found)
    }
}

impl Files {
    /// Releases the files of a submission that wasn't accepted.
    pub(in crate::service) async fn release(&self, id: &SubmissionId, held: &[String]) -> Result<(), Error> {
        match held.is_empty() {
            true => Ok(()),
            false => Ok(self.store.release_files_of(id).await?),
        }
    }
}

/// Refuses a request if one of its files wasn't found.
fn check_all(request: &CreateSubmissionRequest, wanted: &[String], found: &[FileRecord]) -> Result<(), Error> {
    let absent = wanted.iter().find(|sha256| !found.iter().any(|file| file.sha256 == **sha256));
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
