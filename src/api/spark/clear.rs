//! `POST /v1/submissions/clear`

use tracing::Instrument;

use super::Fault;
use crate::{
    service::Gateway,
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
pub(in crate::api) async fn clear(gateway: &Gateway) -> Result<ClearResponse, Fault> {
    let server_spark_version = gateway.spark_version().to_string();
    let gateway = gateway.clone();
    tokio::spawn(async move { gateway.clear().await }.in_current_span()).await??;
    Ok(ClearResponse { action: "ClearResponse", message: String::new(), server_spark_version, success: true })
}
