//! One request.

use axum::{
    body::Bytes,
    http::{HeaderMap, Method, request::Parts},
};
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

/// A request.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) fn new(head: &Parts, body: Bytes) -> Self {
        let (bucket, key) = place(head.uri.path());
        let query = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        Self { method: head.method.clone(), bucket, key, query, headers: head.headers.clone(), body }
    }

    /// Returns a parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn is_next_page(&self) -> bool {
        self.parameter("continuation-token").is_some()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Returns the bucket and the key in a path.
pub(super) fn place(path: &str) -> (String, String) {
    let path = percent_decode_str(path.trim_start_matches('/')).decode_utf8_lossy().into_owned();
    let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
    (bucket.to_owned(), key.to_owned())
}

/// Returns the tag of a content, which need not be a digest.
pub(super) fn tag(content: &Bytes) -> String {
    format!("\"{:x}-{}\"", content.iter().fold(7_u64, |tag, byte| tag.rotate_left(5) ^ u64::from(*byte)), content.len())
}
