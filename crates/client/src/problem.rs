//! Error responses: a problem document (RFC 9457), or the response of a proxy.

use std::fmt::{self, Write};

use http::StatusCode;
use serde::Deserialize;

use super::clean;

/// An error response of the gateway, or of a proxy in front of it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) request_id: Option<String>,
    pub(super) errors: Vec<FieldError>,
    /// What the client adds to the response.
    #[serde(skip)]
    pub(super) advice: Option<String>,
    /// How much of an upload has arrived: the header `Upload-Offset`.
    #[serde(skip)]
    pub(super) upload_offset: Option<u64>,
}

/// An invalid part of the request.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct FieldError {
    /// The field of the body, as a JSON pointer in a URI fragment: `#/appArgs/3`.
    pub(super) pointer: Option<String>,
    /// The name of the query parameter or header.
    pub(super) parameter: Option<String>,
    pub(super) detail: String,
}

impl Problem {
    /// Parses a response that is not a success. `request_id` is the header's, for documents without one.
    pub(super) fn from_answer(status: StatusCode, body: &[u8], request_id: Option<&str>) -> Self {
        let mut problem = serde_json::from_slice::<Self>(body)
            .ok()
            .filter(|problem| !problem.title.is_empty())
            .unwrap_or_else(|| Self::foreign(status, body));
        problem.status = status.as_u16();
        if problem.request_id.is_none() {
            problem.request_id = request_id.map(str::to_owned);
        }
        problem
    }

    /// Creates a problem from a response that isn't a problem document. The detail is the `message` of a JSON document, as in
    /// errors of Spark's protocol, or the first line of plain text.
    fn foreign(status: StatusCode, body: &[u8]) -> Self {
        const MOST: usize = 200;
        #[derive(Deserialize)]
        struct Foreign {
            message: String,
        }
        let text = std::str::from_utf8(body).unwrap_or_default().trim();
        let plain = !text.starts_with(['<', '{']);
        let foreign = serde_json::from_slice::<Foreign>(body).ok();
        let text =
            foreign.as_ref().map(|foreign| &*foreign.message).or_else(|| plain.then_some(text)).unwrap_or_default();
        let detail = text.lines().next().unwrap_or_default().chars().take(MOST).collect();
        let title = format!("HTTP {} {}", status.as_u16(), status.canonical_reason().unwrap_or_default());
        Self { title: title.trim_end().to_owned(), detail, ..Self::default() }
    }

    /// Replaces pointers into the command line by the words that they point to: the user knows `--name`, not `appArgs/2`.
    pub(super) fn with_words(mut self, line: &[String]) -> Self {
        for error in &mut self.errors {
            let at = error.pointer.as_deref().and_then(place_in_line);
            if let Some(word) = at.and_then(|at| line.get(at)) {
                error.pointer = Some(format!("`{word}`"));
            }
        }
        self
    }

    /// Returns the detail to print after the title, unless `errors` contains it too.
    fn own_detail(&self) -> Option<&str> {
        let said = |error: &FieldError| self.detail.ends_with(&error.detail);
        let own = !self.detail.is_empty() && self.detail != self.title && !self.errors.iter().any(said);
        own.then_some(&self.detail)
    }
}

/// Returns the position in the command line that a pointer refers to: `#/appArgs/2`, or `#/appArgs[2]` as refusals have
/// it.
fn place_in_line(pointer: &str) -> Option<usize> {
    let place = pointer.strip_prefix("#/appArgs")?;
    place.strip_prefix('/').or_else(|| place.strip_prefix('[')?.strip_suffix(']'))?.parse().ok()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&clean::line(&self.title))?;
        if let Some(detail) = self.own_detail() {
            write!(f, ": {}", clean::lines(detail))?;
        }
        for error in &self.errors {
            f.write_str("\n  ")?;
            if let Some(place) = error.pointer.as_ref().or(error.parameter.as_ref()) {
                write!(f, "{}: ", clean::line(place))?;
            }
            f.write_str(&clean::lines(&error.detail))?;
        }
        if let Some(advice) = &self.advice {
            write!(f, "\n  {}", clean::lines(advice))?;
        }
        if let Some(id) = &self.request_id {
            f.write_char('\n')?;
            write!(f, "  request id: {}", clean::line(id))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_is_printed_with_its_fields_and_request_id() {
        let body =
            br##"{"type": "https://sparkgate.dev/problems/invalid-request", "title": "Invalid request", "status": 400,
            "detail": "The request can't be run.", "code": "invalid-request", "requestId": "r1", "errors": [
            {"pointer": "#/appArgs/1", "detail": "Unrecognized option: --bogus"},
            {"pointer": "#/labels/a", "detail": "too long"}, {"parameter": "limit", "detail": "at most 500"}]}"##;
        let problem = Problem::from_answer(StatusCode::BAD_REQUEST, body, Some("header's"));
        let line = ["--class", "--bogus"].map(str::to_owned);
        assert_eq!(
            problem.with_words(&line).to_string(),
            "Invalid request: The request can't be run.\n  `--bogus`: Unrecognized option: --bogus\n  \
             #/labels/a: too long\n  limit: at most 500\n  request id: r1"
        );
    }

    #[test]
    fn detail_of_a_field_is_printed_once() {
        let body = br##"{"title": "It can't be run", "detail": "appArgs[0]: there is no YARN.", "errors": [
            {"pointer": "#/appArgs[0]", "detail": "there is no YARN."}]}"##;
        let problem = Problem::from_answer(StatusCode::BAD_REQUEST, body, None);
        assert_eq!(
            problem.with_words(&["--master".to_owned()]).to_string(),
            "It can't be run\n  `--master`: there is no YARN."
        );
    }

    #[test]
    fn response_of_a_proxy_is_reported_by_its_status() {
        let said = |body: &[u8]| Problem::from_answer(StatusCode::BAD_GATEWAY, body, None).to_string();
        assert_eq!(said(b"<html><h1>Bad Gateway</h1>"), "HTTP 502 Bad Gateway");
        assert_eq!(said(b"upstream is\x1b gone\nsecond line"), "HTTP 502 Bad Gateway: upstream is\u{fffd} gone");
        assert_eq!(said(b"{\"title\": 3}"), "HTTP 502 Bad Gateway");
        assert_eq!(said(b"\xff"), "HTTP 502 Bad Gateway");
        assert_eq!(said(b"{\"message\": \"no route\"}"), "HTTP 502 Bad Gateway: no route");
    }
}
