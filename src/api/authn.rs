//! Authentication of requests: takes the credentials out of a request, and puts the caller into it. Every request but the probes
//! passes it, so that no handler can run without a caller.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Extension,
    body::HttpBody,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};

use super::{
    Face, console,
    request_log::{RequestId, text},
    server::Peer,
    spark, v1,
};
use crate::{
    access::Principal,
    metrics::metrics,
    service::{Authenticator, Credentials, Exceeded, Session, Tenancy, Unauthenticated},
    spark::SparkVersion,
};

/// The challenges of a 401 (RFC 6750, section 3).
const CHALLENGE: &str = "Bearer realm=\"sparkgate\"";
const INVALID: &str = "Bearer realm=\"sparkgate\", error=\"invalid_token\"";

/// What [`authenticate`] needs.
#[derive(Clone)]
pub(in crate::api) struct Authentication {
    pub(in crate::api) authenticator: Arc<Authenticator>,
    pub(in crate::api) version: SparkVersion,
}

/// Authenticates a request, or answers it with 401 or 503.
pub(in crate::api) async fn authenticate(
    State(Authentication { authenticator, version }): State<Authentication>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    if is_open(request.uri().path()) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Peer>();
    let headers = request.headers();
    let credentials = Credentials {
        bearer: bearer(headers),
        certificate: peer.and_then(|peer| peer.certificate.as_deref()).map(AsRef::as_ref),
        header: &|name| headers.get(name)?.to_str().ok(),
    };
    match authenticator.authenticate(&credentials).await {
        Ok(caller) => admit(caller, request, next, &id, version).await,
        Err(why) => {
            metrics().logins_refused.with([why.kind()]).inc();
            let path = request.uri().path().to_owned();
            if let (Unauthenticated::Invalid(_), Some(address)) = (&why, address(&request))
                && let Err(exceeded) = authenticator.count_failed_login(address)
            {
                return limited(&exceeded, path, &id, version);
            }
            refused(&why, path, &id, version)
        }
    }
}

/// Takes every caller for the principal of the port for Spark's clients.
pub(in crate::api) async fn of_spark_listener(
    State(Authentication { authenticator, version }): State<Authentication>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    match authenticator.of_spark_listener() {
        Some(caller) => admit(caller, request, next, &id, version).await,
        None => {
            metrics().logins_refused.with([Unauthenticated::Missing.kind()]).inc();
            refused(&Unauthenticated::Missing, request.uri().path().to_owned(), &id, version)
        }
    }
}

/// Counts a request of a known caller, and hands it on with its session.
async fn admit(
    (principal, tenancy): (Arc<Principal>, Arc<Tenancy>),
    mut request: Request,
    next: Next,
    id: &RequestId,
    version: SparkVersion,
) -> Response {
    let (is_read, bytes) = (request.method().is_safe(), request.body().size_hint().lower());
    if let Err(exceeded) = tenancy.count(&principal, is_read, bytes) {
        return limited(&exceeded, request.uri().path().to_owned(), id, version);
    }
    let session = Session::new(principal, tenancy, address(&request), text(id));
    request.extensions_mut().insert(session);
    // Nothing behind this needs it.
    request.headers_mut().remove(header::AUTHORIZATION);
    next.run(request).await
}

/// Returns whether a path is answered without credentials: the probes, what `sparkgate login` begins with, and the files of the
/// console.
fn is_open(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/v1/login") || console::is_asset(path)
}

/// Returns the client's address.
fn address(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<Peer>().map(|peer| peer.forwarded.unwrap_or_else(|| peer.address.ip()))
}

/// Returns the token of `Authorization: Bearer` (RFC 6750, section 2.1). The scheme's case doesn't matter (RFC 9110).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// Answers a request that exceeds a limit of its principal or address.
fn limited(exceeded: &Exceeded, path: String, id: &RequestId, version: SparkVersion) -> Response {
    metrics().requests_limited.with([exceeded.limit]).inc();
    let detail = format!("{exceeded}; an operator of the gateway can raise it.");
    let mut response = match Face::of(&path) {
        Face::Resources => v1::refused(v1::Code::RateLimited, path, detail, id),
        Face::Console => console::refused(v1::Code::RateLimited, &path, detail, id),
        Face::Spark => spark::error(StatusCode::TOO_MANY_REQUESTS, detail, version),
    };
    if let Some(time) = exceeded.retry_after {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn refused(why: &Unauthenticated, path: String, id: &RequestId, version: SparkVersion) -> Response {
    let (status, code, challenge) = match why {
        Unauthenticated::Missing => (StatusCode::UNAUTHORIZED, v1::Code::Unauthenticated, Some(CHALLENGE)),
        Unauthenticated::Invalid(_) => (StatusCode::UNAUTHORIZED, v1::Code::Unauthenticated, Some(INVALID)),
        Unauthenticated::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, v1::Code::AuthenticationUnavailable, None),
    };
    tracing::debug!(%why, "request without a caller");
    let detail = format!("{why}.");
    let mut response = match Face::of(&path) {
        Face::Resources => v1::refused(code, path, detail, id),
        Face::Console => console::refused(code, &path, detail, id),
        Face::Spark => spark::error(status, detail, version),
    };
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_request_is_that_of_the_scheme_bearer() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Bearer ", None),
            ("Bearer", None),
            ("Basic YTpi", None),
            ("abc", None),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(value))]);
            assert_eq!(bearer(&headers), token, "{value}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn only_probes_the_login_and_files_of_the_console_are_open() {
        assert!(["/livez", "/readyz", "/v1/login", "/console/assets/1/console.css"].into_iter().all(is_open));
        for path in [
            "/",
            "/docs",
            "/v1/openapi.json",
            "/livez/",
            "/console/",
            "/console/submissions",
            "/console/assets",
            "/v1/login/x",
            "//livez",
            "/v1/submissions/readyz",
        ] {
            assert!(!is_open(path), "{path}");
        }
    }
}
