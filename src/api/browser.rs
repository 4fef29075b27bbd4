//! Refuses requests that pages of other sites send through the browser of a user who can reach the gateway, unless an operator
//! allows their origin.
//!
//! A browser sends such requests from the user's network, so that any page could submit a job to a gateway on `localhost`.
//! `tower_http::csrf` refuses writes whose `Sec-Fetch-Site` or `Origin` names another site. Without CORS headers a browser doesn't
//! show the response to the page. A page can also resolve its own host name to 127.0.0.1 (DNS rebinding) and is then of the same
//! origin, so the `Host` of a request has to be a name of this gateway.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{HeaderValue, header, uri::Authority},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use tower_http::{
    cors::{Any, CorsLayer},
    csrf::{ConfigError, CsrfLayer, ProtectionError},
};

use super::{faces::Faces, request_log::RequestId, v1};

/// The hosts and origins that a browser may use.
#[derive(Debug, Clone, Default)]
pub struct BrowserSettings {
    /// Names in `Host`, in lower case and without a port, beside IP addresses, `localhost` and `*.localhost`. `None` allows
    /// every name.
    pub hosts: Option<BTreeSet<String>>,
    /// Origins such as `https://dashboard.example.org` whose pages may read and write.
    pub origins: Vec<String>,
}

/// An origin that no browser sends.
#[derive(Debug, thiserror::Error)]
#[error("{origin:?} is not an origin: write https://dashboard.example.org, without a path or a slash at the end")]
pub struct OriginError {
    origin: String,
    source: ConfigError,
}

impl BrowserSettings {
    /// Checks the origins.
    ///
    /// # Errors
    /// [`OriginError`] names the first one that can't be used.
    pub fn check(&self) -> Result<(), OriginError> {
        self.csrf().map(drop)
    }

    fn csrf(&self) -> Result<CsrfLayer, OriginError> {
        self.origins.iter().try_fold(CsrfLayer::new(), |layer, origin| {
            layer.add_trusted_origin(origin).map_err(|source| OriginError { origin: origin.clone(), source })
        })
    }

    fn cors(&self) -> Option<CorsLayer> {
        let origins: Vec<HeaderValue> = self.origins.iter().filter_map(|origin| origin.parse().ok()).collect();
        let layer = CorsLayer::new().allow_origin(origins).allow_methods(Any).allow_headers(Any).expose_headers(Any);
        (!self.origins.is_empty()).then_some(layer)
    }
}

#[derive(Clone)]
struct Guard {
    hosts: Option<Arc<BTreeSet<String>>>,
    faces: Faces,
}

/// Puts the checks in front of `router`.
///
/// # Errors
/// As [`BrowserSettings::check`].
pub(super) fn guard(router: Router, settings: &BrowserSettings, faces: Faces) -> Result<Router, OriginError> {
    let guard = Guard { hosts: settings.hosts.clone().map(Arc::new), faces };
    let router = router.layer(settings.csrf()?).layer(from_fn_with_state(guard, refuse));
    Ok(match settings.cors() {
        Some(cors) => router.layer(cors),
        None => router,
    })
}

/// Refuses requests for other hosts, and writes the refusals of `CsrfLayer`.
async fn refuse(
    State(guard): State<Guard>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    if let (Some(hosts), Some(host)) = (&guard.hosts, host(&request))
        && !is_ours(&host, hosts)
    {
        let detail = format!(
            "This gateway is not known as {host}. Use its address, or start it with --allowed-hosts {host} \
             (SPARKGATE_ALLOWED_HOSTS) if it is to be reached under that name."
        );
        return guard.faces.refused(v1::Code::Forbidden, path, detail, &id);
    }
    let origin = request.headers().get(header::ORIGIN).cloned();
    let response = next.run(request).await;
    if response.extensions().get::<ProtectionError>().is_none() {
        return response;
    }
    let origin = origin.as_ref().and_then(|origin| origin.to_str().ok()).unwrap_or("another site");
    let detail = format!(
        "A browser sent this request for a page of {origin}, which may not use this gateway. If it is to, start the gateway with \
         --cors-origins {origin} (SPARKGATE_CORS_ORIGINS)."
    );
    guard.faces.refused(v1::Code::Forbidden, path, detail, &id)
}

/// The name to which a request was sent, without its port and in lower case.
pub(super) fn host(request: &Request) -> Option<String> {
    let authority = match request.uri().authority() {
        Some(authority) => authority.clone(),
        None => {
            let host = request.headers().get(header::HOST)?;
            // A malformed value is not a name of this gateway.
            let Ok(authority) = Authority::try_from(host.as_bytes()) else {
                return Some(String::from_utf8_lossy(host.as_bytes()).into_owned());
            };
            authority
        }
    };
    Some(authority.host().trim_end_matches('.').to_ascii_lowercase())
}

/// Returns whether a host is this gateway. IP addresses are always allowed: rebinding needs a DNS name.
fn is_ours(host: &str, names: &BTreeSet<String>) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    address.parse::<IpAddr>().is_ok() || host == "localhost" || host.ends_with(".localhost") || names.contains(host)
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, routing::any};
    use tower::ServiceExt;

    use super::*;
    use crate::{api::request_log::logged, spark::SparkVersion};

    fn router(settings: &BrowserSettings) -> Router {
        let router = Router::new().fallback(any(async || "done"));
        logged(guard(router, settings, Faces::all(SparkVersion::V4_3, None)).unwrap())
    }

    async fn status(settings: &BrowserSettings, method: &str, headers: &[(&str, &str)]) -> u16 {
        let request = Request::builder().method(method).uri("/v1/submissions/create");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        router(settings).oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    }

    fn local() -> BrowserSettings {
        BrowserSettings { hosts: Some(BTreeSet::from(["sparkgate.example".to_owned()])), origins: Vec::new() }
    }

    #[tokio::test]
    async fn a_page_of_another_site_writes_nothing() {
        let host = ("host", "localhost:6066");
        for (headers, expected) in [
            (vec![host], 200),
            (vec![host, ("origin", "http://localhost:6066")], 200),
            (vec![host, ("origin", "http://localhost:6066"), ("sec-fetch-site", "same-origin")], 200),
            (vec![host, ("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")], 403),
            (vec![host, ("origin", "https://evil.example")], 403),
            (vec![host, ("origin", "null")], 403),
            (vec![host, ("origin", "http://localhost:8080"), ("sec-fetch-site", "same-site")], 403),
            (vec![host, ("sec-fetch-site", "cross-site")], 403),
        ] {
            assert_eq!(status(&local(), "POST", &headers).await, expected, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn only_names_of_the_gateway_are_served() {
        for (host, expected) in [
            ("localhost:6066", 200),
            ("LOCALHOST.", 200),
            ("spark.localhost", 200),
            ("127.0.0.1:6066", 200),
            ("[::1]:6066", 200),
            ("Sparkgate.example", 200),
            ("evil.example:6066", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("a b", 403),
        ] {
            for method in ["GET", "POST"] {
                assert_eq!(status(&local(), method, &[("host", host)]).await, expected, "{method} {host}");
            }
        }
        let anywhere = BrowserSettings { hosts: None, ..local() };
        assert_eq!(status(&anywhere, "POST", &[("host", "evil.example")]).await, 200);
    }

    #[tokio::test]
    async fn origins_that_an_operator_names_read_and_write() {
        let origin = "https://dashboard.example";
        let settings = BrowserSettings { origins: vec![origin.to_owned()], ..local() };
        let headers = [("host", "localhost"), ("origin", origin), ("sec-fetch-site", "cross-site")];
        assert_eq!(status(&settings, "POST", &headers).await, 200);
        let request = Request::get("/v1/submissions").header("host", "localhost").header("origin", origin);
        let response = router(&settings).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], origin);
        for origin in ["dashboard.example", "https://dashboard.example/page", "file://x"] {
            let settings = BrowserSettings { origins: vec![origin.to_owned()], ..local() };
            assert!(settings.check().unwrap_err().to_string().contains(origin));
        }
    }
}
