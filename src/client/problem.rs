//! An answer that is an error: a problem document (RFC 9457), or whatever a proxy in between said.

use std::fmt::{self, Write};

use http::StatusCode;
use serde::Deserialize;

use super::clean;

/// Why the gateway, or what answered in its place, did not do it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) request_id: Option<String>,
    pub(super) errors: Vec<FieldError>,
}

/// One thing that is wrong, and where.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct FieldError {
    /// Into the body, as a JSON pointer in a URI fragment: `#/appArgs/3`.
    pub(super) pointer: Option<String>,
    /// Or of the query.
    pub(super) parameter: Option<String>,
    pub(super) detail: String,
}

impl Problem {
    /// Reads an answer that is no success. `request_id` is the header's, for documents without one.
    pub(super) fn of_answer(status: StatusCode, body: &[u8], request_id: Option<&str>) -> Self {
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

    /// Not a problem document: the first line of a text, if it is one.
    fn foreign(status: StatusCode, body: &[u8]) -> Self {
        const MOST: usize = 200;
        let text = std::str::from_utf8(body).unwrap_or_default().trim();
        let plain = !text.starts_with(['<', '{']);
        let detail = text.lines().next().filter(|_| plain).unwrap_or_default().chars().take(MOST).collect();
        let reason = status.canonical_reason().unwrap_or("an error");
        Self { title: format!("HTTP {} {reason}", status.as_u16()), detail, ..Self::default() }
    }

    /// Puts the words of a command line beside what points at them: the user knows `--name`, not `appArgs/2`.
    pub(super) fn with_words(mut self, line: &[String]) -> Self {
        for error in &mut self.errors {
            let at = error.pointer.as_deref().and_then(place_in_line);
            if let Some(word) = at.and_then(|at| line.get(at)) {
                error.pointer = Some(format!("`{word}`"));
            }
        }
        self
    }

    /// What to say behind the title: nothing that stands in `errors` too.
    fn own_detail(&self) -> Option<&str> {
        let said = |error: &FieldError| self.detail.ends_with(&error.detail);
        let own = !self.detail.is_empty() && self.detail != self.title && !self.errors.iter().any(said);
        own.then_some(&self.detail)
    }
}

/// `#/appArgs/2`, or with the words of a refusal `#/appArgs[2]`.
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
    fn a_problem_is_told_with_its_places_and_its_request() {
        let body =
            br##"{"type": "https://sparkgate.dev/problems/invalid-request", "title": "Invalid request", "status": 400,
            "detail": "The request can't be run.", "code": "invalid-request", "requestId": "r1", "errors": [
            {"pointer": "#/appArgs/1", "detail": "Unrecognized option: --bogus"},
            {"pointer": "#/labels/a", "detail": "too long"}, {"parameter": "limit", "detail": "at most 500"}]}"##;
        let problem = Problem::of_answer(StatusCode::BAD_REQUEST, body, Some("header's"));
        let line = ["--class", "--bogus"].map(str::to_owned);
        assert_eq!(
            problem.with_words(&line).to_string(),
            "Invalid request: The request can't be run.\n  `--bogus`: Unrecognized option: --bogus\n  \
             #/labels/a: too long\n  limit: at most 500\n  request id: r1"
        );
    }

    #[test]
    fn nothing_is_said_twice() {
        let body = br##"{"title": "It can't be run", "detail": "appArgs[0]: there is no YARN.", "errors": [
            {"pointer": "#/appArgs[0]", "detail": "there is no YARN."}]}"##;
        let problem = Problem::of_answer(StatusCode::BAD_REQUEST, body, None);
        assert_eq!(
            problem.with_words(&["--master".to_owned()]).to_string(),
            "It can't be run\n  `--master`: there is no YARN."
        );
    }

    #[test]
    fn an_answer_of_somebody_else_is_told_by_its_status() {
        let said = |body: &[u8]| Problem::of_answer(StatusCode::BAD_GATEWAY, body, None).to_string();
        assert_eq!(said(b"<html><h1>Bad Gateway</h1>"), "HTTP 502 Bad Gateway");
        assert_eq!(said(b"upstream is\x1b gone\nsecond line"), "HTTP 502 Bad Gateway: upstream is\u{fffd} gone");
        assert_eq!(said(b"{\"title\": 3}"), "HTTP 502 Bad Gateway");
        assert_eq!(said(b"\xff"), "HTTP 502 Bad Gateway");
    }
}
