//! The name of the gateway to which a request was sent.

use axum::{
    extract::Request,
    http::{HeaderValue, header, uri::Authority},
};

/// The name to which a request was sent, without its port and in lower case.
pub fn host(request: &Request) -> Option<String> {
    hosts(request).next()
}

/// The names to which a request was sent: that of its URI, if it has one, and those of `Host`.
pub(crate) fn hosts(request: &Request) -> impl Iterator<Item = String> {
    let name = |authority: &Authority| authority.host().trim_end_matches('.').to_ascii_lowercase();
    let of_header = move |host: &HeaderValue| match Authority::try_from(host.as_bytes()) {
        Ok(authority) => name(&authority),
        // A malformed value is not a name of this gateway.
        Err(_) => String::from_utf8_lossy(host.as_bytes()).into_owned(),
    };
    let of_uri = request.uri().authority().map(name);
    of_uri.into_iter().chain(request.headers().get_all(header::HOST).iter().map(of_header))
}
