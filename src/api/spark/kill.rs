//! `POST /v1/submissions/kill/{id}`

use tracing::Instrument;

use super::Fault;
use crate::{
    service::Service,
    spark::rest::{ErrorResponse, KillSubmissionResponse},
    submission::SubmissionId,
};

/// Kill a driver
#[utoipa::path(
    post, path = "/v1/submissions/kill/{id}", tag = "Spark", operation_id = "killSubmission",
    params(("id" = String, Path, description = "The submission's id")),
    responses(
        (status = 200, description = "`success` is false if the submission has ended or is unknown", body = KillSubmissionResponse),
        (status = 400, description = "No id is given", body = ErrorResponse),
        (status = 500, description = "Internal error of the gateway", body = ErrorResponse),
        (status = 503, description = "The database can't be reached; try again", body = ErrorResponse),
    )
)]
pub(in crate::api) async fn kill(service: &Service, id: Option<String>) -> Result<KillSubmissionResponse, Fault> {
    let id = id.ok_or(Fault::MissingId("kill"))?;
    // A malformed id is an unknown submission, not an error.
    let success = match id.parse::<SubmissionId>() {
        Ok(id) => {
            let service = service.clone();
            tokio::spawn(async move { service.submissions.kill(&id).await }.in_current_span()).await??
        }
        Err(_) => false,
    };
    let message = match success {
        true => format!("Kill request for {id} submitted"),
        false => format!("Driver {id} has already finished or does not exist"),
    };
    Ok(KillSubmissionResponse {
        action: "KillSubmissionResponse",
        message,
        server_spark_version: service.submissions.spark_version().to_string(),
        submission_id: id,
        success,
    })
}
