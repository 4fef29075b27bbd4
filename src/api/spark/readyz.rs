//! `GET /v1/submissions/readyz`

use super::Fault;
use crate::{
    service::{Readiness, Service},
    spark::rest::{ErrorResponse, ReadyzResponse},
};

/// Check whether submissions are accepted
#[utoipa::path(
    get, path = "/v1/submissions/readyz", tag = "Spark", operation_id = "submissionsReadyz",
    responses(
        (status = 200, description = "Submissions are accepted", body = ReadyzResponse),
        (status = 503, description = "Not ready; the message gives the reason", body = ErrorResponse),
    )
)]
pub(in crate::api) async fn readyz(service: &Service) -> Result<ReadyzResponse, Fault> {
    let message = match service.health.readiness().await {
        Readiness::Ready => String::new(),
        Readiness::Accepting(trouble) => trouble,
        Readiness::NotReady(reason) => return Err(Fault::NotReady(reason)),
    };
    Ok(ReadyzResponse {
        action: "ReadyzResponse",
        message,
        server_spark_version: service.submissions.spark_version().to_string(),
        success: true,
    })
}
