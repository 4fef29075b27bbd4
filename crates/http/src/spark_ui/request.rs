//! A request to a driver's UI, as a client sends it and as the driver gets it.

use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Request, Uri,
    header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, IF_MODIFIED_SINCE, IF_NONE_MATCH},
    request::Parts,
};
use bytes::Bytes;
use percent_encoding::percent_decode_str;

use crate::v1::spark_ui::no_ui as no_spark_ui;
use sparkgate_submission::SubmissionId;
use sparkgate_web::problem::Problem;

/// The headers of a client that a driver gets. Credentials aren't among them, nor encodings: pages are changed on their way.
const PASSED_ON: [HeaderName; 5] = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, IF_MODIFIED_SINCE, IF_NONE_MATCH];
/// Spark begins its links with the value of this header (`UIUtils.uiRoot`).
const CONTEXT: HeaderName = HeaderName::from_static("x-forwarded-context");
/// The path that a reverse proxy in front of the gateway removes.
const PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
/// Escapes of characters that a server may take for others: those of `/`, `\`, `%`, `.` and `;`.
const ODD: [&str; 5] = ["%2f", "%5c", "%25", "%2e", "%3b"];

/// What a path means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) id: SubmissionId,
    pub(super) ticket: &'a str,
    /// The path before that of the driver: `/v1/ui/{id}/{ticket}`.
    pub(super) base: &'a str,
    /// The path of the driver.
    pub(super) path: &'a str,
    query: Option<&'a str>,
    /// Whether the path may be one that kills a job or a stage.
    pub(super) is_kill: bool,
}

impl<'a> Target<'a> {
    /// Reads a path. `None` for those that Spark has no page at, and a server may understand differently than we do.
    pub(super) fn of(uri: &'a Uri) -> Option<Self> {
        let whole = uri.path();
        let (id, rest) = whole.strip_prefix("/v1/ui/")?.split_once('/')?;
        let (ticket, rest) = rest.split_once('/')?;
        let (base, path) = whole.split_at(whole.len() - rest.len() - 1);
        let lower = path.to_ascii_lowercase();
        if lower.contains([';', '\\']) || lower.contains("//") || ODD.iter().any(|odd| lower.contains(odd)) {
            return None;
        }
        let decoded = percent_decode_str(&lower).decode_utf8().ok()?;
        if decoded.contains(char::is_control) || decoded.split('/').any(|part| part == "." || part == "..") {
            return None;
        }
        let is_kill = decoded.split('/').any(|part| part.trim() == "kill");
        Some(Self { id: id.parse().ok()?, ticket, base, path, query: uri.query(), is_kill })
    }

    /// Returns the way to the same page with another ticket, relative to this one, so that it works behind a proxy that removes a prefix.
    pub(super) fn way_back(&self) -> String {
        let up = "../".repeat(self.path.matches('/').count() + 2);
        format!("{up}{}", self.submission_path())
    }

    /// Does the same from another host, for the gateway's URL.
    pub(super) fn way_back_at(&self, url: &str) -> String {
        format!("{url}/v1/{}", self.submission_path())
    }

    fn submission_path(&self) -> String {
        let query = self.query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("submissions/{}/ui{}{query}", self.id, self.path)
    }

    /// Returns what to do about a ticket that is of no use.
    pub(super) fn advice(&self) -> String {
        format!("open /v1/submissions/{}/ui.", self.id)
    }
}

/// Returns the path that a proxy in front of the gateway says it removed; empty without one. It is only used in links of the response to
/// this request.
pub(super) fn prefix(headers: &HeaderMap) -> &str {
    let text = headers.get(PREFIX).and_then(|value| value.to_str().ok()).unwrap_or_default().trim_end_matches('/');
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b));
    let is_path = text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_part));
    if is_path { text } else { "" }
}

/// Returns the request for the driver.
pub(super) fn for_driver(
    parts: &Parts,
    target: &Target<'_>,
    base: &str,
    form: Bytes,
) -> Result<Request<Bytes>, Problem> {
    let query = target.query.map(|query| format!("?{query}")).unwrap_or_default();
    let request = Request::builder().method(&parts.method).uri(format!("{}{query}", target.path));
    let mut request = request.body(form).map_err(|_| no_spark_ui("There is nothing at this path."))?;
    for name in PASSED_ON {
        for value in parts.headers.get_all(&name) {
            request.headers_mut().append(&name, value.clone());
        }
    }
    let base = HeaderValue::from_str(base).map_err(|_| no_spark_ui("There is nothing at this path."))?;
    request.headers_mut().insert(CONTEXT, base);
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "/v1/ui/driver-20260101000000-0001/r1-ab";

    fn target(path: &str) -> Option<(String, bool)> {
        let uri: Uri = format!("{BASE}{path}").parse().unwrap();
        let target = Target::of(&uri)?;
        assert_eq!((target.base, target.ticket), (BASE, "r1-ab"));
        Some((target.path.to_owned(), target.is_kill))
    }

    #[test]
    fn a_path_that_may_kill_is_recognized_however_it_is_written() {
        for path in ["/", "/jobs/", "/jobs/job/?id=kill", "/killed", "/static/webui.css", "/a%20b"] {
            let expected = path.split('?').next().map(|path| (path.to_owned(), false));
            assert_eq!(target(path), expected, "{path}");
        }
        for path in
            ["/jobs/job/kill/?id=0", "/stages/stage/kill", "/jobs/job/%6bill/", "/jobs/job/Kill/", "/x/kill%20/"]
        {
            assert!(target(path).unwrap().1, "{path}");
        }
        for path in [
            "/jobs//job/kill/",
            "/jobs/./job/",
            "/jobs/../jobs/",
            "/jobs/job;x/",
            "/jobs/job%2Fkill/",
            "/%2e%2e/",
            "/a%5cb",
            "/%256bill",
            "/a%00b",
            "/a%ffb",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }

    #[test]
    fn the_way_back_leads_to_the_same_page_of_the_submission() {
        for (path, expected) in [
            ("/", "../../../submissions/driver-20260101000000-0001/ui/"),
            ("/jobs/job/?id=1", "../../../../../submissions/driver-20260101000000-0001/ui/jobs/job/?id=1"),
        ] {
            let uri: Uri = format!("{BASE}{path}").parse().unwrap();
            assert_eq!(Target::of(&uri).unwrap().way_back(), expected);
        }
    }

    #[test]
    fn a_driver_gets_no_credentials() {
        let uri: Uri = format!("{BASE}/jobs/?id=1").parse().unwrap();
        let request = Request::get(&uri)
            .header("authorization", "Bearer secret")
            .header("cookie", "session=secret")
            .header("proxy-authorization", "secret")
            .header("x-forwarded-user", "secret")
            .header("x-forwarded-context", "/secret")
            .header("accept-encoding", "gzip")
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("accept", "text/html");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let request = for_driver(&parts, &Target::of(&uri).unwrap(), BASE, Bytes::new()).unwrap();
        let headers: Vec<_> =
            request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("accept", "text/html"), ("x-forwarded-context", BASE)]);
        assert_eq!(request.uri(), "/jobs/?id=1");
    }

    #[test]
    fn a_prefix_is_a_plain_path() {
        for (value, expected) in [
            ("/spark", "/spark"),
            ("/a/b-1/", "/a/b-1"),
            ("", ""),
            ("/", ""),
            ("spark", ""),
            ("//evil.example", ""),
            ("/a\"b", ""),
            ("/a/../b c", ""),
        ] {
            let headers = HeaderMap::from_iter([(PREFIX, HeaderValue::from_str(value).unwrap())]);
            assert_eq!(prefix(&headers), expected, "{value}");
        }
    }
}
