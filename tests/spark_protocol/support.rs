//! A router to ask, and its answers.

use axum::{Router, body::Body, http::Request};
use http_body_util::BodyExt;
use sparkgate::{
    api::{HttpSettings, router},
    service::Gateway,
    spark::SparkVersion,
};
use tower::ServiceExt;

/// As the recorded masters were set.
pub(crate) const BODY_LIMIT: usize = 2048;

pub(crate) fn face(version: SparkVersion) -> Router {
    let settings = HttpSettings { max_request_body_bytes: BODY_LIMIT, ..HttpSettings::default() };
    router(gateway(version), settings)
}

// TO FILL IN: a `Gateway` of the real service, on a database of the test's own.
fn gateway(version: SparkVersion) -> Gateway {
    Gateway::stand_in(version)
}

/// An answer as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub(crate) async fn ask(router: &Router, method: &str, target: &str, body: Vec<u8>) -> Answer {
    let request = Request::builder().method(method).uri(target).header("host", "master:6066");
    send(router, request.body(Body::from(body)).expect("a request")).await
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.expect("an answer");
    let (head, body) = response.into_parts();
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers.iter().map(|(key, value)| (key.to_string(), text(value))).collect(),
        body: String::from_utf8(body.collect().await.expect("a body").to_bytes().to_vec()).expect("UTF-8"),
    }
}
