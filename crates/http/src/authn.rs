//! Authentication of requests: takes the credentials out of a request, and puts the caller into it. Every request but the probes
//! passes it, so that no handler can run without a caller.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Extension,
    body::HttpBody,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, Uri, header},
    middleware::Next,
    response::Response,
};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{audit, console, counted_bytes::CountedBytes, session_cookie};
use sparkgate_access::Action;
use sparkgate_metrics::metrics;
use sparkgate_server::Peer;
use sparkgate_service::{
    Audit, Authenticated, Authenticator, Credentials, Exceeded, Session, SignInWays, Unauthenticated,
};
use sparkgate_web::{
    face::AnyFace,
    fetch_metadata::wants_page,
    problem::{Code, Problem},
    request_log::{RequestId, text},
    routes::{Route, SessionUse, Uploads},
};

/// The challenges of a 401 (RFC 6750, section 3).
const CHALLENGE: &str = "Bearer realm=\"sparkgate\"";
const INVALID: &str = "Bearer realm=\"sparkgate\", error=\"invalid_token\"";

/// What [`authenticate`] needs.
#[derive(Clone)]
pub(crate) struct Authentication {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) audit: Arc<Audit>,
    /// In whose format requests are refused.
    pub(crate) face: AnyFace,
}

/// Authenticates a request, or answers it with 401 or 503.
pub(crate) async fn authenticate(
    State(Authentication { authenticator, audit, face }): State<Authentication>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    let route = Route::of(&request);
    if route.is_open {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Peer>();
    let headers = request.headers();
    // Clients of Livy, and Airflow's HTTP provider, send a token as a password.
    let password = password(headers);
    let is_https = authenticator.is_https();
    let session = session_cookie::read_session(request.method(), headers, (&face, route.session), is_https);
    // Only requests with such a cookie have to know the ways to sign in.
    let session = session.filter(|_| !authenticator.sign_in_ways().are_none());
    let credentials = Credentials {
        bearer: bearer(headers).or(password.as_deref()),
        certificate: peer.and_then(|peer| peer.certificate.as_deref()).map(AsRef::as_ref),
        header: &|name| only(headers, name),
        address: client(&request),
        session,
    };
    let answer = match only(headers, header::AUTHORIZATION.as_str()) {
        Ok(_) => authenticator.authenticate(&credentials).await,
        Err(why) => Err(why),
    };
    match answer {
        Ok(caller) => admit(caller, request, next, &id, (&audit, &face)).await,
        Err(why) => {
            metrics().logins_refused.with([why.kind()]).inc();
            let uri = request.uri().clone();
            let is_linked = route.session == SessionUse::OpenedByUsers;
            let is_page = face.is_for_browsers() || is_linked && wants_page(request.headers());
            if let Unauthenticated::Limited(exceeded) = &why {
                return limited(exceeded, uri.path(), &id, &face);
            }
            if let (Unauthenticated::Invalid(_) | Unauthenticated::UnknownSession, Some(address)) =
                (&why, client(&request))
                && let Err(exceeded) = authenticator.count_failed_login(address)
            {
                return limited(&exceeded, uri.path(), &id, &face);
            }
            if is_page {
                return page(&why, &uri, &id, &authenticator.sign_in_ways());
            }
            refused(&why, &uri, &id, &face)
        }
    }
}

/// Takes every caller for the principal of the port for Spark's clients.
pub(crate) async fn authenticate_spark_listener(
    State(Authentication { authenticator, audit, face }): State<Authentication>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    match authenticator.authenticate_spark_listener() {
        Some(caller) => admit(caller, request, next, &id, (&audit, &face)).await,
        None => {
            metrics().logins_refused.with([Unauthenticated::Missing.kind()]).inc();
            refused(&Unauthenticated::Missing, request.uri(), &id, &face)
        }
    }
}

/// Counts a request of a known caller, and hands it on with its session.
async fn admit(
    Authenticated { principal, tenancy, session: session_of_browser, reviewed }: Authenticated,
    mut request: Request,
    next: Next,
    id: &RequestId,
    (audit, face): (&Arc<Audit>, &AnyFace),
) -> Response {
    let bytes = request.body().size_hint();
    let is_read = request.method().is_safe();
    let session = Session::new(principal.clone(), tenancy.clone(), client(&request), text(id));
    let session = session.with_browser_session(session_of_browser).with_review(reviewed);
    // A tenant has a quota for its files, and a large one would never fit into a rate. Who may upload none has no such quota.
    let is_upload = is_upload(&request) && session.require(Action::Submit).is_ok();
    let announced = if is_upload { 0 } else { bytes.lower() };
    if let Err(exceeded) = tenancy.count(&principal, is_read, announced) {
        return limited(&exceeded, request.uri().path(), id, face);
    }
    let counted = CountedBytes::default();
    if !is_upload && bytes.exact().is_none() {
        request = request.map(|body| counted.body(body, principal, tenancy));
    }
    let path = request.uri().path().to_owned();
    request.extensions_mut().insert(session.clone());
    // Nothing behind this needs them.
    request.headers_mut().remove(header::AUTHORIZATION);
    request.headers_mut().remove(header::COOKIE);
    let response = audit::recorded(audit, face, session, request, next).await;
    match counted.exceeded() {
        Some(exceeded) => limited(exceeded, &path, id, face),
        None => response,
    }
}

/// Returns whether a request uploads files: by themselves, or in the form of a submission.
fn is_upload(request: &Request) -> bool {
    let is_form = || {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        content_type.is_some_and(|value| value.to_ascii_lowercase().starts_with("multipart/form-data"))
    };
    match Route::of(request).uploads {
        Uploads::Files => [Method::PUT, Method::PATCH].contains(request.method()),
        Uploads::Forms => *request.method() == Method::POST && is_form(),
        Uploads::None => false,
    }
}

/// Returns the client's address.
fn client(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<Peer>().map(Peer::client)
}

/// Returns the value of a header with credentials. Of two, one may be a client's and the other a proxy's, so neither counts.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Unauthenticated> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    let text = first.map(HeaderValue::to_str).transpose();
    match (text, second) {
        (Ok(text), None) => Ok(text),
        (_, Some(_)) => Err(Unauthenticated::Invalid(format!("the request has the header {name} more than once"))),
        (Err(_), None) => Err(Unauthenticated::Invalid(format!("the header {name} is no visible ASCII text"))),
    }
}

/// Returns the token of `Authorization: Bearer` (RFC 6750, section 2.1). The scheme's case doesn't matter (RFC 9110).
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// Returns the password of `Authorization: Basic` (RFC 7617). The name of the user doesn't matter: a token says whose it is.
fn password(headers: &HeaderMap) -> Option<String> {
    let (scheme, text) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let decoded = STANDARD.decode(text.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(decoded).ok()?;
    let (_, password) = text.split_once(':')?;
    Some(password.to_owned()).filter(|password| !password.is_empty())
}

/// Answers a request that exceeds a limit of its principal or address.
fn limited(exceeded: &Exceeded, path: &str, id: &RequestId, face: &AnyFace) -> Response {
    metrics().requests_limited.with([exceeded.limit]).inc();
    let detail = format!("{exceeded}; an operator of the gateway can raise it.");
    let mut response = face.answer(&Problem::new(Code::RateLimited, detail), path, id);
    if let Some(time) = exceeded.retry_after {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Answers a request without a caller.
fn refused(why: &Unauthenticated, uri: &Uri, id: &RequestId, face: &AnyFace) -> Response {
    let (code, challenge) = answer_to(why);
    let mut response = face.answer(&Problem::new(code, format!("{why}.")), uri.path(), id);
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        if let Some(more) = face.challenge() {
            response.headers_mut().append(header::WWW_AUTHENTICATE, more);
        }
    }
    response
}

/// Answers a browser without a caller with a page, which has the ways to sign in.
fn page(why: &Unauthenticated, uri: &Uri, id: &RequestId, ways: &SignInWays) -> Response {
    let (code, challenge) = answer_to(why);
    let mut response = console::unauthenticated(why, code, uri, ways, id);
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

fn answer_to(why: &Unauthenticated) -> (Code, Option<HeaderValue>) {
    tracing::debug!(%why, "request without a caller");
    match why {
        Unauthenticated::Missing | Unauthenticated::UnknownSession => {
            (Code::Unauthenticated, Some(HeaderValue::from_static(CHALLENGE)))
        }
        Unauthenticated::Invalid(_) => (Code::Unauthenticated, Some(HeaderValue::from_static(INVALID))),
        Unauthenticated::Limited(_) => (Code::RateLimited, None),
        Unauthenticated::Unavailable(_) => (Code::AuthenticationUnavailable, None),
    }
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
    fn the_password_of_a_request_is_that_of_the_scheme_basic() {
        for (value, expected) in [
            ("Basic YWxpY2U6c2dfeA==", Some("sg_x")),
            ("basic OmE6Yg==", Some("a:b")),
            ("Basic YWxpY2U6", None),
            ("Basic YWxpY2U=", None),
            ("Basic ?", None),
            ("Bearer YWxpY2U6c2dfeA==", None),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(value))]);
            assert_eq!(password(&headers).as_deref(), expected, "{value}");
        }
    }
}
