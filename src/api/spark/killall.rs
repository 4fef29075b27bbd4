//! `POST /v1/submissions/killall`

use tracing::Instrument;

use super::Fault;
use crate::{
    service::Service,
    spark::rest::{ErrorResponse, KillAllSubmissionResponse},
};

/// Kill all drivers
#[utoipa::path(
    post, path = "/v1/submissions/killall", tag = "Spark", operation_id = "killAllSubmissions",
    responses(
        (status = 200, description = "All drivers will be killed", body = KillAllSubmissionResponse),
        (status = 500, description = "Internal error of the gateway", body = ErrorResponse),
        (status = 503, description = "The database can't be reached; try again", body = ErrorResponse),
    )
)]
pub(in crate::api) async fn killall(service: &Service) -> Result<KillAllSubmissionResponse, Fault> {
    let server_spark_version = service.submissions.spark_version().to_string();
    let service = service.clone();
    tokio::spawn(async move { service.submissions.kill_all().await }.in_current_span()).await??;
    Ok(KillAllSubmissionResponse {
        action: "KillAllSubmissionResponse",
        message: "Kill request for all drivers submitted".to_owned(),
        server_spark_version,
        success: true,
    })
}
