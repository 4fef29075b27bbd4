//! The actions of Spark's protocol other than `create`.

use super::fault::Fault;
use sparkgate_service::{Readiness, Service, Session};
use sparkgate_spark::rest::{
    ClearResponse, ErrorResponse, KillAllSubmissionResponse, KillSubmissionResponse, ReadyzResponse,
    SubmissionStatusResponse,
};
use sparkgate_submission::SubmissionId;

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
pub(crate) async fn status(
    service: &Service,
    caller: &Session,
    id: Option<String>,
) -> Result<SubmissionStatusResponse, Fault> {
    let submission_id = id.ok_or(Fault::MissingId("status"))?;
    // A malformed id is an unknown submission, not an error.
    let status = match submission_id.parse::<SubmissionId>() {
        Ok(id) => service.submissions.status(caller, &id).await?,
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
pub(crate) async fn kill(
    service: &Service,
    caller: Session,
    id: Option<String>,
) -> Result<KillSubmissionResponse, Fault> {
    let id = id.ok_or(Fault::MissingId("kill"))?;
    // A malformed id is an unknown submission, not an error.
    let success = match id.parse::<SubmissionId>() {
        Ok(id) => service.submissions.kill(&caller, &id).await?,
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

/// Kill all drivers
#[utoipa::path(
    post, path = "/v1/submissions/killall", tag = "Spark", operation_id = "killAllSubmissions",
    responses(
        (status = 200, description = "All drivers will be killed", body = KillAllSubmissionResponse),
        (status = 500, description = "Internal error of the gateway", body = ErrorResponse),
        (status = 503, description = "The database can't be reached; try again", body = ErrorResponse),
    )
)]
pub(crate) async fn kill_all(service: &Service, caller: Session) -> Result<KillAllSubmissionResponse, Fault> {
    let server_spark_version = service.submissions.spark_version().to_string();
    service.submissions.kill_all(&caller).await?;
    Ok(KillAllSubmissionResponse {
        action: "KillAllSubmissionResponse",
        message: "Kill request for all drivers submitted".to_owned(),
        server_spark_version,
        success: true,
    })
}

/// Hide ended submissions
///
/// Status requests of this protocol don't find them any more. Their records are kept.
#[utoipa::path(
    post, path = "/v1/submissions/clear", tag = "Spark", operation_id = "clearSubmissions",
    responses(
        (status = 200, description = "Ended submissions are hidden", body = ClearResponse),
        (status = 500, description = "Internal error of the gateway", body = ErrorResponse),
        (status = 503, description = "The database can't be reached; try again", body = ErrorResponse),
    )
)]
pub(crate) async fn clear(service: &Service, caller: Session) -> Result<ClearResponse, Fault> {
    let server_spark_version = service.submissions.spark_version().to_string();
    service.submissions.clear(&caller).await?;
    Ok(ClearResponse { action: "ClearResponse", message: String::new(), server_spark_version, success: true })
}

/// Check whether submissions are accepted
#[utoipa::path(
    get, path = "/v1/submissions/readyz", tag = "Spark", operation_id = "submissionsReadyz",
    responses(
        (status = 200, description = "Submissions are accepted", body = ReadyzResponse),
        (status = 503, description = "Not ready; the message gives the reason", body = ErrorResponse),
    )
)]
pub(crate) async fn readyz(service: &Service) -> Result<ReadyzResponse, Fault> {
    let message = match service.health.readiness().await {
        Readiness::Ready => String::new(),
        Readiness::Accepting(reason) => reason.summary.to_owned(),
        Readiness::NotReady(reason) => return Err(Fault::NotReady(reason.summary)),
    };
    Ok(ReadyzResponse {
        action: "ReadyzResponse",
        message,
        server_spark_version: service.submissions.spark_version().to_string(),
        success: true,
    })
}
