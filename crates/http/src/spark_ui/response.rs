//! A driver's response, as a client gets it.

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Response, Uri,
        header::{
            CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
            CONTENT_TYPE, ETAG, LAST_MODIFIED, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
};

use super::html::with_storage;
use sparkgate_service::DriverBytes;

/// The headers of a driver that a client gets. `Set-Cookie` and whatever else concerns the whole origin isn't among them.
const PASSED_ON: [HeaderName; 6] =
    [CONTENT_DISPOSITION, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED];

/// Puts each document into an origin of its own, which may load from here only. Scripts in a page, and those of its attributes, are
/// Spark's own way.
const POLICY: &str = "sandbox allow-scripts allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox allow-downloads; \
                      default-src 'self' 'unsafe-inline' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'";

/// The same for the host of one submission, which is an origin of its own already.
const POLICY_OF_ONE: &str = "sandbox allow-same-origin allow-scripts allow-forms allow-modals allow-popups \
                             allow-popups-to-escape-sandbox allow-downloads; default-src 'self' 'unsafe-inline' data: blob:; \
                             object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const OURS: [(HeaderName, &str); 4] = [
    (X_FRAME_OPTIONS, "DENY"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];
/// Spark's scripts and styles, which change with the driver only, and with it the ticket.
const KEPT: HeaderValue = HeaderValue::from_static("private, max-age=900");

/// What Spark's pages consist of. A browser shows nothing else: what it does with parts of a multipart, a PDF or an XML document, the
/// policy above may not concern.
const SHOWN: [&str; 15] = [
    "text/html",
    "text/css",
    "text/javascript",
    "application/javascript",
    "application/x-javascript",
    "application/json",
    "text/plain",
    "image/png",
    "image/gif",
    "image/jpeg",
    "image/svg+xml",
    "image/x-icon",
    "image/vnd.microsoft.icon",
    "font/woff",
    "font/woff2",
];

/// What a response answers.
pub(super) struct Sent<'a> {
    pub(super) method: &'a Method,
    /// The path that the driver got.
    pub(super) path: &'a str,
    /// What the client's path has before it.
    pub(super) base: &'a str,
    /// Whether the host of the request is that of this submission alone.
    pub(super) is_of_one: bool,
}

/// Returns the response for the client; `None` for one that redirects elsewhere, or is no plain answer.
pub(super) fn from_driver(response: Response<DriverBytes>, sent: &Sent<'_>) -> Option<axum::response::Response> {
    let (parts, body) = response.into_parts();
    if parts.status.is_informational() {
        return None;
    }
    let mut headers = HeaderMap::new();
    for name in PASSED_ON {
        if let Some(value) = parts.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    if let Some(location) = parts.headers.get(LOCATION) {
        headers.insert(LOCATION, HeaderValue::from_str(&moved(location.to_str().ok()?, sent)?).ok()?);
    }
    let policy = if sent.is_of_one { POLICY_OF_ONE } else { POLICY };
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.extend(OURS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if parts.status.is_success() && sent.path.starts_with("/static/") {
        headers.insert(CACHE_CONTROL, KEPT);
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_page = content_type == "text/html";
    if !parts.status.is_redirection() && !SHOWN.contains(&&*content_type) {
        let name =
            headers.get(CONTENT_DISPOSITION).filter(|value| value.as_bytes().starts_with(b"attachment;")).cloned();
        headers.insert(CONTENT_DISPOSITION, name.unwrap_or(HeaderValue::from_static("attachment")));
    }
    let has_body = *sent.method != Method::HEAD && !matches!(parts.status.as_u16(), 204 | 304);
    if is_page {
        headers.remove(CONTENT_LENGTH);
    }
    let body = if is_page && has_body { with_storage(body) } else { body };
    let mut passed_on = axum::response::Response::new(Body::from_stream(body));
    *passed_on.status_mut() = parts.status;
    *passed_on.headers_mut() = headers;
    Some(passed_on)
}

/// Returns where a redirect of the driver leads: below our path, whatever server it names. Spark redirects to its own address, with our
/// path or without it. `None` for one that isn't of HTTP.
fn moved(location: &str, sent: &Sent<'_>) -> Option<String> {
    let uri: Uri = match location.contains(':') || location.starts_with('/') {
        true => location.parse().ok()?,
        false => {
            let folder = sent.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{location}").parse().ok()?
        }
    };
    let is_http = matches!(uri.scheme_str(), None | Some("http" | "https")) && uri.path().starts_with('/');
    let (path, query) = (uri.path(), uri.query().map(|query| format!("?{query}")).unwrap_or_default());
    let below = path.strip_prefix(sent.base).filter(|rest| rest.starts_with('/')).unwrap_or(path);
    is_http.then(|| format!("{}{below}{query}", sent.base))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::{StreamExt, stream};

    use super::*;

    const BASE: &str = "/v1/ui/driver-20260101000000-0001/r1-ab";

    fn answered(headers: &[(&'static str, &'static str)]) -> Option<axum::response::Response> {
        answered_at(false, headers)
    }

    fn answered_at(is_of_one: bool, headers: &[(&'static str, &'static str)]) -> Option<axum::response::Response> {
        let body = stream::once(async { Ok(Bytes::from_static(b"<html>")) }).boxed();
        let mut response = Response::new(body);
        for (name, value) in headers {
            response.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        from_driver(response, &Sent { method: &Method::GET, path: "/jobs/job/", base: BASE, is_of_one })
    }

    #[test]
    fn a_client_gets_no_header_that_concerns_the_whole_origin() {
        let response = answered(&[
            ("content-type", "image/svg+xml"),
            ("content-length", "6"),
            ("set-cookie", "session=evil"),
            ("clear-site-data", "\"*\""),
            ("service-worker-allowed", "/"),
            ("access-control-allow-origin", "https://evil.example"),
            ("access-control-allow-credentials", "true"),
            ("strict-transport-security", "max-age=1"),
            ("refresh", "0; https://evil.example"),
            ("link", "</x>; rel=preload"),
            ("content-security-policy", "default-src *"),
            ("x-frame-options", "ALLOWALL"),
            ("www-authenticate", "Basic"),
            ("content-encoding", "gzip"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("cache-control", "public, max-age=1000000"),
        ])
        .unwrap();
        let headers: Vec<_> =
            response.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(
            headers,
            [
                ("content-length", "6"),
                ("content-type", "image/svg+xml"),
                ("content-security-policy", POLICY),
                ("x-frame-options", "DENY"),
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"),
                ("cache-control", "no-store"),
            ]
        );
        assert!(POLICY.starts_with("sandbox ") && !POLICY.contains("allow-same-origin"));
        let of_one = answered_at(true, &[("content-security-policy", "default-src *")]).unwrap();
        assert_eq!(of_one.headers()[CONTENT_SECURITY_POLICY], POLICY_OF_ONE);
        assert_eq!(POLICY_OF_ONE.replace("allow-same-origin ", ""), POLICY, "both allow the rest");
    }

    #[test]
    fn a_browser_shows_only_what_pages_of_spark_consist_of() {
        for (content_type, sent, expected) in [
            ("text/html;charset=utf-8", None, None),
            ("Text/HTML", None, None),
            ("application/json", None, None),
            ("image/svg+xml", Some("inline"), Some("inline")),
            ("multipart/x-mixed-replace; boundary=x", None, Some("attachment")),
            ("application/pdf", Some("inline"), Some("attachment")),
            ("application/xml", None, Some("attachment")),
            ("text/xsl", None, Some("attachment")),
            ("application/xhtml+xml", None, Some("attachment")),
            ("text/htmlx", None, Some("attachment")),
            ("", None, Some("attachment")),
            (
                "application/zip",
                Some("attachment; filename=\"eventLogs.zip\""),
                Some("attachment; filename=\"eventLogs.zip\""),
            ),
        ] {
            let headers =
                [("content-type", content_type)].into_iter().chain(sent.map(|sent| ("content-disposition", sent)));
            let response = answered(&headers.collect::<Vec<_>>()).unwrap();
            let disposition = response.headers().get(CONTENT_DISPOSITION).map(|value| value.to_str().unwrap());
            assert_eq!(disposition, expected, "{content_type}");
        }
    }

    #[test]
    fn a_redirect_stays_below_the_path_of_the_submission() {
        for (location, below) in [
            ("http://10.1.2.3:4040/jobs/", "/jobs/"),
            ("http://10.1.2.3:4040/v1/ui/driver-20260101000000-0001/r1-ab/jobs/?id=1", "/jobs/?id=1"),
            ("/stages/", "/stages/"),
            ("kill/?id=1", "/jobs/job/kill/?id=1"),
            ("https://evil.example/x?y", "/x?y"),
            ("https://evil.example", "/"),
            ("/v1/ui/driver-20260101000000-0001/r1-abc/x", "/v1/ui/driver-20260101000000-0001/r1-abc/x"),
        ] {
            let response = answered(&[("location", location)]).unwrap();
            assert_eq!(response.headers()[LOCATION], format!("{BASE}{below}"), "{location}");
        }
        for location in ["javascript:alert(1)", "ftp://evil.example/", "data:text/html,x", "http:///x y"] {
            assert!(answered(&[("location", location)]).is_none(), "{location}");
        }
        // A path, wherever a browser would take it to lead.
        let response = answered(&[("location", "//evil.example/x")]).unwrap();
        assert!(response.headers()[LOCATION].to_str().unwrap().starts_with(BASE));
    }
}
