//! Refuses requests that pages of other sites send through the browser of a user who can reach the gateway, unless an operator
//! allows their origin.
//!
//! A browser sends such requests from the user's network, so that any page could submit a job to a gateway on `localhost`.
//! `tower_http::csrf` refuses writes whose `Sec-Fetch-Site` or `Origin` names another site. Without CORS headers a browser doesn't
//! show the response to the page. A page can also resolve its own host name to an address of the gateway (DNS rebinding) and is then of
//! the same origin, so the `Host` of a browser's request has to be a name of this gateway. Over TLS the certificate proves it.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::header,
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use tower_http::csrf::ProtectionError;
use url::Url;

use super::{
    face::AnyFace,
    fetch_metadata::is_of_browser,
    host::hosts,
    problem::{Code, Problem},
    request_log::RequestId,
    settings::{BrowserSettings, OriginError},
};
use sparkgate_server::Peer;
use sparkgate_service::Authenticator;

#[derive(Clone)]
struct Guard {
    hosts: Arc<BTreeSet<String>>,
    for_all_clients: bool,
    face: AnyFace,
    access: Arc<Authenticator>,
}

impl Guard {
    /// Returns the host that a request names and that isn't this gateway's, if that matters for the request.
    fn stranger(&self, request: &Request) -> Option<String> {
        let is_secure = request.extensions().get::<Peer>().is_some_and(|peer| peer.is_secure);
        let of_browser = is_of_browser(request.headers()) && !is_secure;
        if !self.for_all_clients && !of_browser {
            return None;
        }
        let mut named = hosts(request).peekable();
        // A browser always names one.
        let unnamed = (of_browser && named.peek().is_none()).then(|| "no name".to_owned());
        unnamed.or_else(|| named.find(|host| !self.is_ours(host)))
    }

    /// Returns whether a host is this gateway. IP addresses are always allowed: rebinding needs a DNS name, and one that is public.
    fn is_ours(&self, host: &str) -> bool {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_below = |suffix: &str| host.ends_with(suffix);
        let of_console = || {
            let url = self.access.external_url()?;
            Some(Url::parse(&url).ok()?.host_str()?.eq_ignore_ascii_case(host))
        };
        address.parse::<IpAddr>().is_ok()
            || host == "localhost"
            || [".localhost", ".svc", ".svc.cluster.local"].into_iter().any(is_below)
            || self.hosts.contains(host)
            || of_console().unwrap_or_default()
    }
}

/// Puts the checks in front of `router`.
///
/// # Errors
/// As [`BrowserSettings::check`].
pub fn guard(
    router: Router,
    settings: &BrowserSettings,
    face: AnyFace,
    access: Arc<Authenticator>,
) -> Result<Router, OriginError> {
    let BrowserSettings { hosts, for_all_clients, .. } = settings.clone();
    let guard = Guard { hosts: Arc::new(hosts), for_all_clients, face, access };
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
    if let Some(host) = guard.stranger(&request) {
        let detail = format!(
            "This gateway is not known as {host}. Use its address, or start it with --allowed-hosts {host} \
             (SPARKGATE_ALLOWED_HOSTS) if it is to be reached under that name."
        );
        return guard.face.answer(&Problem::new(Code::Forbidden, detail), &path, &id);
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
    guard.face.answer(&Problem::new(Code::Forbidden, detail), &path, &id)
}
