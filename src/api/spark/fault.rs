//! What can go wrong with a request, and the `ErrorResponse` that tells.

use std::{error::Error, fmt::Write as _};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

use super::reply;
use crate::{
    api::request_log::RequestId,
    service,
    spark::{SparkVersion, rest::RequestError},
};

/// Why a request of Spark's protocol has no reply of its own kind. Its text is the `message`, except for faults of
/// ours: those are logged, and the client gets the id under which they are.
#[derive(Debug, thiserror::Error)]
pub(in crate::api) enum Fault {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("Submission ID is missing in {0} request.")]
    MissingId(&'static str),
    #[error(
        "The request body exceeds the maximum allowed size ({limit} bytes). \
         Adjust spark.master.rest.maxRequestBodySize to change the limit."
    )]
    TooLarge { limit: usize },
    #[error("The request body could not be read: {0}.")]
    BrokenBody(String),
    #[error("Master is not ready. {0}")]
    NotReady(String),
    #[error("The request took too long and may still be carried out.")]
    Slow,
    #[error("could not write the reply as JSON")]
    Unwritable(#[source] serde_json::Error),
    #[error("the request's task ended early")]
    Task(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Service(service::Error),
}

impl From<service::Error> for Fault {
    fn from(error: service::Error) -> Self {
        match error {
            service::Error::Refused(refusal) => Self::Request(refusal.into()),
            error => Self::Service(error),
        }
    }
}

impl Fault {
    fn status(&self) -> StatusCode {
        match self {
            Self::Request(_) | Self::MissingId(_) | Self::BrokenBody(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Service(service::Error::Refused(_)) => StatusCode::BAD_REQUEST,
            Self::NotReady(_)
            | Self::Slow
            | Self::Service(
                service::Error::Unavailable(_) | service::Error::InDoubt(_) | service::Error::ClusterUnavailable(_),
            ) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unwritable(_) | Self::Task(_) | Self::Service(service::Error::Internal { .. }) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    pub(super) fn into_response(self, version: SparkVersion, id: &RequestId) -> Response {
        let status = self.status();
        let message = match status {
            StatusCode::INTERNAL_SERVER_ERROR => internal_error(id),
            StatusCode::SERVICE_UNAVAILABLE if matches!(self, Self::Service(_)) => format!(
                "Service unavailable: the database can't be reached just now. Nothing is known to be lost; \
                 try again. The log tells more under request id {}.",
                id.as_str()
            ),
            _ => self.to_string(),
        };
        match status {
            StatusCode::INTERNAL_SERVER_ERROR => tracing::error!(error = chain(&self), "a request failed"),
            StatusCode::SERVICE_UNAVAILABLE => tracing::warn!(error = chain(&self), "a request was put off"),
            _ => tracing::debug!(error = chain(&self), "a request was refused"),
        }
        let mut response = reply::error(status, message, version);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// What a client learns of a fault that isn't its own.
pub(in crate::api) fn internal_error(id: &RequestId) -> String {
    format!("Internal server error: the gateway's log tells more under request id {}.", id.as_str())
}

/// An error and its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::{Extension, Router, body::Body, extract::Request, middleware::from_fn};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::{api::request_log::request_log, spark::Refusal};

    /// Status, `Retry-After` and body of the answer to a request that meets `fault`.
    async fn answer(fault: fn() -> Fault) -> (u16, Option<String>, String) {
        let handler = async move |Extension(id): Extension<RequestId>| fault().into_response(SparkVersion::V4_3, &id);
        let router: Router = Router::new().fallback(handler).layer(from_fn(request_log));
        let request = Request::builder().header("x-request-id", "r-1").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let retry = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, retry, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_refusal_of_the_service_reads_like_a_failed_validation() {
        let refused = || service::Error::Refused(Refusal::property("spark.master", "give k8s://<url>")).into();
        let (status, retry, body) = answer(refused).await;
        assert_eq!((status, retry), (400, None));
        assert!(body.contains("Validation of message CreateSubmissionRequest failed!\\nCaused by: "), "{body}");
        assert!(body.contains(r#"sparkProperties[\"spark.master\"]: give k8s://<url>"#), "{body}");
    }

    #[tokio::test]
    async fn what_may_pass_is_to_be_tried_again() {
        let (status, retry, body) = answer(|| Fault::NotReady("The watcher is behind.".to_owned())).await;
        assert_eq!((status, retry.as_deref()), (503, Some("1")));
        assert!(body.contains("\"Master is not ready. The watcher is behind.\""), "{body}");
        assert_eq!(answer(|| Fault::Slow).await.1.as_deref(), Some("1"));
    }

    #[tokio::test]
    async fn a_fault_of_ours_gives_an_id_and_no_more() {
        let broken = || Fault::Unwritable(serde_json::from_str::<u8>("x").unwrap_err());
        let (status, _, body) = answer(broken).await;
        assert_eq!(status, 500);
        assert!(body.contains("Internal server error: ") && body.contains("r-1") && !body.contains("column"), "{body}");
    }
}
