//! Responses with a JSON document.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use sparkgate_web::problem::Problem;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A status, a document, and headers in addition to those of every document: content type and entity tag.
pub(crate) struct Reply<T> {
    pub(super) status: StatusCode,
    pub(super) document: T,
    pub(super) headers: Vec<(header::HeaderName, String)>,
}

impl<T: Serialize> Reply<T> {
    pub(super) fn ok(document: T) -> Self {
        Self { status: StatusCode::OK, document, headers: Vec::new() }
    }

    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(super) fn with_header(mut self, name: header::HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let json = match serde_json::to_vec(&self.document) {
            Ok(json) => json,
            Err(error) => return Problem::broken_off(format!("writing a document as JSON: {error}")).into_response(),
        };
        // The tag is a digest of the document, so it is correct whatever the document was made from.
        let digest = Sha256::digest(&json);
        let tag = digest[..12].iter().fold(String::new(), |tag, byte| format!("{tag}{byte:02x}"));
        let mut response = Response::new(Body::from(json));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, JSON);
        let more = self.headers.into_iter().chain([(header::ETAG, format!("\"{tag}\""))]);
        for (name, value) in more {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}
