//! Compression of responses, and what it has to do with HEAD.

use std::convert::Infallible;

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Version, header},
    middleware::Next,
    response::Response,
};
use futures::stream;
use tower::ServiceExt;
use tower_http::{
    CompressionLevel,
    compression::{
        Compression,
        predicate::{Predicate, SizeAbove},
    },
};

/// The smallest document that is compressed, in bytes.
const COMPRESSED: u64 = 1024;

/// Marks a response whose parts are sent as they arise. Compression would hold them back.
#[derive(Debug, Clone, Copy)]
pub struct Live;

/// Compresses large responses for clients that ask for it. Responses to other clients pass as they are.
pub async fn compress(request: Request, next: Next) -> Response {
    let is_head = request.method() == Method::HEAD;
    match takes_gzip(request.headers()) {
        false => next.run(request).await,
        // The length of the compressed document isn't known.
        true if is_head => without_length(next.run(request).await),
        true => {
            let is_whole =
                |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| extensions.get::<Live>().is_none();
            let compression = Compression::new(next).quality(CompressionLevel::Fastest);
            let compression = compression.compress_when(SizeAbove::new(COMPRESSED).and(is_whole));
            let Ok(response) = compression.oneshot(request).await;
            with_weak_tag(response.map(Body::new))
        }
    }
}

/// Keeps the length of a response to a HEAD request unknown, if it is. The router that encloses this one would take the length of
/// the empty body for that of the document.
pub(crate) fn without_length_of_nothing(mut response: Response) -> Response {
    let is_empty = response.body().size_hint().exact() == Some(0);
    if is_empty && !response.headers().contains_key(header::CONTENT_LENGTH) {
        *response.body_mut() = body_of_unknown_length();
    }
    response
}

fn body_of_unknown_length() -> Body {
    Body::from_stream(stream::empty::<Result<&str, Infallible>>())
}

/// Returns whether a client takes responses that are compressed with gzip.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|encoding| encoding.trim_start().starts_with("gzip"))
}

fn without_length(mut response: Response) -> Response {
    let of_header =
        response.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let length = of_header.or_else(|| response.body().size_hint().exact());
    if length.is_some_and(|length: u64| length >= COMPRESSED) {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = body_of_unknown_length();
    }
    response
}

/// Makes the entity tag of a compressed response weak: its bytes are others than those of the same document uncompressed.
fn with_weak_tag(mut response: Response) -> Response {
    if response.headers().contains_key(header::CONTENT_ENCODING)
        && let Some(tag) = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok())
        && let Ok(weak) = HeaderValue::from_str(&format!("W/{tag}"))
    {
        response.headers_mut().insert(header::ETAG, weak);
    }
    response
}
