//! Errors of a request, and the `ErrorResponse` for each.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

use super::reply;
use sparkgate_service::{self, error_chain};
use sparkgate_spark::{Refusal, SparkVersion, rest::RequestError};
use sparkgate_web::{
    body,
    problem::{Code, Problem, Retry},
    request_log::{RequestId, text},
};

/// An error of a request of Spark's protocol. Its text is the `message`. The exception are internal errors: they are
/// logged, and the client gets only the request id to find them by.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("Submission ID is missing in {0} request.")]
    MissingId(&'static str),
    #[error(
        "The request body exceeds the maximum allowed size ({limit} bytes). \
         Adjust spark.master.rest.maxRequestBodySize to change the limit. \
         Here that is the gateway's --max-request-body or SPARKGATE_MAX_REQUEST_BODY."
    )]
    TooLarge { limit: usize },
    #[error("The request body could not be read: {0}.")]
    BrokenBody(String),
    #[error("The bodies of other requests take all the memory there is for them. Nothing was done; try again.")]
    Busy,
    #[error("Master is not ready. {0}")]
    NotReady(&'static str),
    #[error("The request took too long and may still be carried out.")]
    Slow,
    #[error("the request has no caller: it passed no authentication")]
    Unauthenticated,
    #[error("could not write the reply as JSON")]
    Unwritable(#[from] serde_json::Error),
    #[error(transparent)]
    Service(sparkgate_service::Error),
}

impl From<body::Fault> for Fault {
    fn from(fault: body::Fault) -> Self {
        match fault {
            body::Fault::TooLarge { limit } => Self::TooLarge { limit },
            body::Fault::Broken(why) => Self::BrokenBody(why),
            body::Fault::Busy => Self::Busy,
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Request(refusal.into())
    }
}

impl From<sparkgate_service::Error> for Fault {
    fn from(error: sparkgate_service::Error) -> Self {
        match error {
            sparkgate_service::Error::Refused(refusal) => Self::Request(refusal.into()),
            error => Self::Service(error),
        }
    }
}

impl Fault {
    fn code(&self) -> Code {
        match self {
            Self::Request(_) | Self::MissingId(_) | Self::BrokenBody(_) => Code::InvalidRequest,
            Self::TooLarge { .. } => Code::RequestTooLarge,
            Self::Busy => Code::Busy,
            Self::NotReady(_) => Code::Unavailable,
            Self::Slow => Code::TimedOut,
            Self::Unauthenticated | Self::Unwritable(_) => Code::InternalError,
            Self::Service(error) => Code::of(error),
        }
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) fn into_response(self, version: SparkVersion, id: &RequestId) -> Response {
        let status = self.status();
        match status {
            StatusCode::INTERNAL_SERVER_ERROR => tracing::error!(error = error_chain(&self), "request failed"),
            StatusCode::SERVICE_UNAVAILABLE => tracing::warn!(error = error_chain(&self), "request answered with 503"),
            // Some of Spark's messages quote the request below their first line, and requests may contain secrets.
            _ => tracing::debug!(error = error_chain(&self).lines().next(), "request refused"),
        }
        let mut response = reply::error(status, self.message(id), version);
        if self.may_be_repeated() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    fn message(&self, id: &RequestId) -> String {
        let id_in_log = || format!("Details are in the gateway's log under request id {}.", text(id));
        match self {
            Self::Service(sparkgate_service::Error::BrokenOff(_)) | Self::Unwritable(_) => Problem::panicked(id).detail,
            _ if self.status() == StatusCode::INTERNAL_SERVER_ERROR => {
                format!("Internal server error: nothing was done. {}", id_in_log())
            }
            Self::Service(sparkgate_service::Error::InDoubt { id: submission, .. }) => format!(
                "The connection to the database was lost while the submission was being written: it may have been \
                 accepted, as {submission}. Check its status before you submit again. {}",
                id_in_log()
            ),
            Self::Service(sparkgate_service::Error::SubmitBrokenOff(_)) => format!(
                "The gateway failed while the submission was being written: it may have been accepted. \
                 Check before you submit again. {}",
                id_in_log()
            ),
            Self::Service(sparkgate_service::Error::Unavailable(_)) => format!(
                "Service unavailable: the database can't be reached. Nothing was done; try again. {}",
                id_in_log()
            ),
            Self::Service(sparkgate_service::Error::PerhapsDone(_)) => format!(
                "Service unavailable: the database didn't confirm all of it. The requested action may have been \
                 done; repeating the request is safe. {}",
                id_in_log()
            ),
            _ => self.to_string(),
        }
    }

    /// Returns whether the response asks for a retry. A client that retries by itself must not submit twice.
    fn may_be_repeated(&self) -> bool {
        let is_for_now = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&self.status());
        is_for_now && self.code().retry() == Retry::Soon
    }
}

#[cfg(test)]
mod tests {
    use axum::{Extension, Router, body::Body, extract::Request};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use sparkgate_web::request_log::logged;

    /// Returns status, `Retry-After` and body of the response to a request that fails with `fault`.
    async fn answer(fault: fn() -> Fault) -> (u16, Option<String>, String) {
        let handler = async move |Extension(id): Extension<RequestId>| fault().into_response(SparkVersion::V4_3, &id);
        let router = logged(Router::new().fallback(handler));
        let request = Request::builder().header("x-request-id", "r-1").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let retry = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, retry, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_refusal_of_the_service_reads_like_a_failed_validation() {
        let refused =
            || sparkgate_service::Error::Refused(Refusal::property("spark.master", "give k8s://<url>")).into();
        let (status, retry, body) = answer(refused).await;
        assert_eq!((status, retry), (400, None));
        assert!(body.contains("Validation of message CreateSubmissionRequest failed!\\nCaused by: "), "{body}");
        assert!(body.contains(r#"sparkProperties[\"spark.master\"]: give k8s://<url>"#), "{body}");
    }

    #[tokio::test]
    async fn transient_error_asks_for_a_retry_unless_it_may_be_done() {
        let (status, retry, body) = answer(|| Fault::NotReady("The watcher is behind.")).await;
        assert_eq!((status, retry.as_deref()), (503, Some("1")));
        assert!(body.contains("\"Master is not ready. The watcher is behind.\""), "{body}");
        assert_eq!(answer(|| Fault::Slow).await.1, None, "it may be done already");
    }

    #[tokio::test]
    async fn submission_in_doubt_does_not_ask_for_a_retry() {
        let in_doubt = || {
            let source = sparkgate_store::Error::InDoubt { action: "creating", source: sqlx::Error::PoolClosed };
            let id = "driver-20260102030405-0001".parse().unwrap();
            Fault::Service(sparkgate_service::Error::InDoubt { id, source })
        };
        let (status, retry, body) = answer(in_doubt).await;
        assert_eq!((status, retry), (503, None));
        assert!(body.contains("it may have been accepted, as driver-20260102030405-0001"), "{body}");
        assert!(body.contains("r-1"), "{body}");
    }

    #[tokio::test]
    async fn the_request_itself_is_not_logged() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let writer = log.reopen().unwrap();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false);
        let _guard = tracing::subscriber::set_default(subscriber.with_writer(writer).finish());
        let refused = || Fault::Request(RequestError::NoAction { json: "{\n  \"key\" : \"s3cret\"\n}".to_owned() });
        let (_, _, body) = answer(refused).await;
        assert!(body.contains("s3cret"), "{body}");
        let log = std::fs::read_to_string(log.path()).unwrap();
        assert!(log.contains("Action field not found in JSON") && !log.contains("s3cret"), "{log}");
    }

    #[tokio::test]
    async fn internal_error_reveals_only_the_request_id() {
        let broken = || Fault::Unwritable(serde_json::from_str::<u8>("x").unwrap_err());
        let (status, _, body) = answer(broken).await;
        assert_eq!(status, 500);
        assert!(body.contains("Internal server error: ") && body.contains("r-1") && !body.contains("column"), "{body}");
    }
}
