//! `POST /v1/submissions/clear`

use tracing::Instrument;

use super::Fault;
use crate::{
    service::Service,
    spark::rest::{ClearResponse, ErrorResponse},
};

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
pub(in crate::api) async fn clear(service: &Service) -> Result<ClearResponse, Fault> {
    let server_spark_version = service.submissions.spark_version().to_string();
    let service = service.clone();
    tokio::spawn(async move { service.submissions.clear().await }.in_current_span()).await??;
    Ok(ClearResponse { action: "ClearResponse", message: String::new(), server_spark_version, success: true })
}
