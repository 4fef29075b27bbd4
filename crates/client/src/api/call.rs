//! A call, which can be made any number of times.

use std::{fmt::Display, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to percent-encode in a path's segment or a query's value: all but the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The timeout of a call that doesn't ask the gateway to wait.
const PATIENCE: Duration = Duration::from_secs(60);

const JSON: &str = "application/json, application/problem+json";

#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// For errors: "listing submissions".
    pub(super) action: String,
    pub(super) method: Method,
    /// The path with its query.
    pub(super) path: String,
    pub(super) accept: &'static str,
    pub(super) headers: Vec<(&'static str, HeaderValue)>,
    pub(super) body: Bytes,
    /// Timeout until the head of the response, and again for the body of a response that is read whole.
    pub(super) patience: Duration,
    /// The call may be made again although the gateway may have received it.
    pub(super) is_repeatable: bool,
    /// The gateway is expected to be there, and to be back soon if it isn't.
    pub(super) is_patient: bool,
}

impl Call {
    /// Creates a call of the path of `segments` below `/v1`.
    fn new(action: String, method: Method, segments: &[&str]) -> Self {
        let mut path = "/v1".to_owned();
        for segment in segments {
            path += &format!("/{}", utf8_percent_encode(segment, ENCODED));
        }
        Self {
            action,
            method,
            path,
            accept: JSON,
            headers: Vec::new(),
            body: Bytes::new(),
            patience: PATIENCE,
            is_repeatable: true,
            is_patient: false,
        }
    }

    pub(crate) fn get(action: impl Into<String>, segments: &[&str]) -> Self {
        Self::new(action.into(), Method::GET, segments)
    }

    pub(crate) fn head(action: impl Into<String>, segments: &[&str]) -> Self {
        Self::new(action.into(), Method::HEAD, segments)
    }

    /// Creates the upload of a file, whose content is read again for each try.
    pub(crate) fn put(action: impl Into<String>, segments: &[&str]) -> Self {
        let mut call = Self::new(action.into(), Method::PUT, segments);
        call.headers.push((header::CONTENT_TYPE.as_str(), HeaderValue::from_static("application/octet-stream")));
        call
    }

    /// Creates the continuation of an upload.
    pub(crate) fn append(action: impl Into<String>, segments: &[&str]) -> Self {
        let mut call = Self::new(action.into(), Method::PATCH, segments);
        call.headers.push((header::CONTENT_TYPE.as_str(), HeaderValue::from_static("application/partial-upload")));
        call
    }

    pub(crate) fn delete(action: impl Into<String>, segments: &[&str]) -> Self {
        Self::new(action.into(), Method::DELETE, segments)
    }

    pub(crate) fn post(action: impl Into<String>, segments: &[&str], body: String) -> Self {
        Self::with_json(action.into(), Method::POST, segments, body)
    }

    /// Creates the replacement of a resource.
    pub(crate) fn replace(action: impl Into<String>, segments: &[&str], body: String) -> Self {
        Self::with_json(action.into(), Method::PUT, segments, body)
    }

    fn with_json(action: String, method: Method, segments: &[&str], body: String) -> Self {
        let mut call = Self::new(action, method, segments);
        call.headers.push((header::CONTENT_TYPE.as_str(), HeaderValue::from_static("application/json")));
        call.body = body.into();
        call
    }

    /// Adds a parameter of the query.
    pub(crate) fn query(mut self, name: &str, value: impl Display) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path += &format!("{name}={}", utf8_percent_encode(&value.to_string(), ENCODED));
        self
    }

    /// Adds a parameter that may be absent.
    pub(crate) fn query_if(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    /// Makes the call once: a retry might do twice what the gateway has done already.
    pub(crate) fn not_repeated(mut self) -> Self {
        self.is_repeatable = false;
        self
    }

    /// Waits for a gateway that restarts, for half a minute: for calls after others that it has answered.
    pub(crate) fn through_restarts(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// Extends the timeout by the time that the gateway is asked to wait.
    pub(crate) fn longer_by(mut self, wait: Duration) -> Self {
        self.patience = PATIENCE + wait;
        self
    }

    pub(crate) fn action(&self) -> &str {
        &self.action
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_values_are_encoded() {
        let call = Call::get("reading", &["submissions", "a/b?"]).query("label", "team=data & co").query("limit", 5);
        assert_eq!(call.path, "/v1/submissions/a%2Fb%3F?label=team%3Ddata%20%26%20co&limit=5");
        assert_eq!(call.query_if("cursor", None::<String>).path.matches('&').count(), 1);
    }
}
