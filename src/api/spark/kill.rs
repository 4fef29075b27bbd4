//! `POST /v1/submissions/kill/{id}`

use tracing::Instrument;

use super::Fault;
use crate::{
    service::Gateway,
    spark::rest::{ErrorResponse, KillSubmissionResponse},
    submission::SubmissionId,
};

/// End a driver
#[utoipa::path(
    post, path = "/v1/submissions/kill/{id}", tag = "Spark", operation_id = "killSubmission",
    params(("id" = String, Path, description = "The submission's id")),
    responses(
        (status = 200, description = "Whether there was something to end", body = KillSubmissionResponse),
        (status = 400, description = "No id is given", body = ErrorResponse),
        (status = 500, description = "A fault of the gateway", body = ErrorResponse),
        (status = 503, description = "The database can't be reached; try again", body = ErrorResponse),
    )
)]
pub(in crate::api) async fn kill(gateway: &Gateway, id: Option<String>) -> Result<KillSubmissionResponse, Fault> {
    let id = id.ok_or(Fault::MissingId("kill"))?;
    // A text that can't be an id is unknown, no error.
    let success = match id.parse::<SubmissionId>() {
        Ok(id) => {
            let gateway = gateway.clone();
            tokio::spawn(async move { gateway.kill(&id).await }.in_current_span()).await??
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
        server_spark_version: gateway.spark_version().to_string(),
        submission_id: id,
        success,
    })
}
