//! `GET /v1/submissions/status/{id}`

use super::Fault;
use crate::{
    service::Service,
    spark::rest::{ErrorResponse, SubmissionStatusResponse},
    submission::SubmissionId,
};

/// Get the state of a submission
///
/// The driver's state is known as soon as the submission is accepted.
#[utoipa::path(
    get, path = "/v1/submissions/status/{id}", tag = "Spark", operation_id = "submissionStatus",
    params(("id" = String, Path, description = "The submission's id")),
    responses(
        (status = 200, description = "The state; `success` is false if the submission is unknown", body = SubmissionStatusResponse),
        (status = 400, description = "No id is given", body = ErrorResponse),
        (status = 500, description = "Internal error of the gateway", body = ErrorResponse),
        (status = 503, description = "The database can't be reached; try again", body = ErrorResponse),
    )
)]
pub(in crate::api) async fn status(service: &Service, id: Option<String>) -> Result<SubmissionStatusResponse, Fault> {
    let submission_id = id.ok_or(Fault::MissingId("status"))?;
    // A malformed id is an unknown submission, not an error.
    let status = match submission_id.parse::<SubmissionId>() {
        Ok(id) => service.submissions.status(&id).await?,
        Err(_) => None,
    };
    let success = status.is_some();
    let driver_state = status.as_ref().map(|status| status.driver_state.as_str());
    let (message, worker) = status.map_or((None, None), |status| (status.message, status.worker));
    let (worker_host_port, worker_id) = worker.map(|worker| (worker.host_port, worker.id)).unzip();
    Ok(SubmissionStatusResponse {
        action: "SubmissionStatusResponse",
        driver_state,
        message,
        server_spark_version: service.submissions.spark_version().to_string(),
        submission_id,
        success,
        worker_host_port,
        worker_id,
    })
}
