//! The gateway's name, as the client of a request uses it.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts, uri::Authority},
};

/// The name under which the client reaches the gateway, with its port.
pub(crate) struct Host(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for Host {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let of_header = || parts.headers.get(header::HOST)?.to_str().ok();
        Ok(Self(parts.uri.authority().map(Authority::as_str).or_else(of_header).map(str::to_owned)))
    }
}
