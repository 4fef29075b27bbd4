//! Resolves a request's path by the rules of Spark's servlets and of Jetty, on which they run.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::{PROTOCOL_VERSION, action::Action};
use crate::version::SparkVersion;

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A known action; `id` is the segment after it, if that isn't empty. Further segments are ignored.
    Action { action: Action, id: Option<String> },
    /// The error servlet, with its message.
    Nowhere { message: String, unknown_version: bool },
}

/// A path that Jetty refuses before Spark handles it (HTTP 400 and an HTML page).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// Not a path: an invalid escape, a NUL, or more `..` than segments.
    #[error("Bad Request")]
    Malformed,
    /// A path that programs could interpret differently: an encoded slash, an empty segment.
    #[error("{0}")]
    Ambiguous(&'static str),
}

/// Parses a path as it is in the request line, without the query.
///
/// # Errors
/// A [`BadPath`]. Jetty 12 (Spark 4.2 and later) refuses more than its predecessors.
pub fn parse_path(path: &str, version: SparkVersion) -> Result<Target, BadPath> {
    let path = decode(path, version)?;
    let parts: Vec<&str> = path.split('/').collect();
    if let ["", PROTOCOL_VERSION, "submissions", word, rest @ ..] = &parts[..]
        && let Some(action) = Action::from_path(word, version)
    {
        let id = rest.first().filter(|id| !id.is_empty()).map(|&id| id.to_owned());
        return Ok(Target::Action { action, id });
    }
    Ok(nowhere(&path, version))
}

/// Returns the answer of `ErrorServlet`, which ignores empty segments.
fn nowhere(path: &str, version: SparkVersion) -> Target {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let actions = if version < SparkVersion::V4_0 {
        "/create, /kill, or /status"
    } else {
        "/create, /kill, /killall, /clear, /status, or /readyz"
    };
    let mut unknown_version = false;
    let problem = match parts[..] {
        [] => "Missing protocol version.".to_owned(),
        [PROTOCOL_VERSION] => "Missing the /submissions prefix.".to_owned(),
        [PROTOCOL_VERSION, "submissions", ..] => format!("Missing an action: please specify one of {actions}."),
        [other, ..] => {
            unknown_version = true;
            format!("Unknown protocol version '{other}'.")
        }
    };
    let message = format!("{problem} Please submit requests through http://[host]:[port]/v1/submissions/...");
    Target::Nowhere { message, unknown_version }
}

/// Strips path parameters, decodes escapes and resolves dot segments.
fn decode(path: &str, version: SparkVersion) -> Result<String, BadPath> {
    let is_jetty_12 = version >= SparkVersion::V4_2;
    let mut kept: Vec<Cow<'_, str>> = Vec::new();
    let mut segments = path.strip_prefix('/').ok_or(BadPath::Malformed)?.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        let (name, has_parameter) = segment.split_once(';').map_or((segment, false), |(name, _)| (name, true));
        let decoded = decode_segment(name, is_jetty_12)?;
        let is_dots = decoded == "." || decoded == "..";
        if is_dots && has_parameter {
            return Err(BadPath::Ambiguous("Ambiguous path parameters"));
        }
        if is_dots && decoded != name && version >= SparkVersion::V4_0 {
            return Err(BadPath::Ambiguous("Ambiguous URI path segment"));
        }
        if name.is_empty() && !is_last && version >= SparkVersion::V4_0 {
            return Err(BadPath::Ambiguous("Ambiguous URI empty segment"));
        }
        match &*decoded {
            "." => {}
            ".." => drop(kept.pop().ok_or(BadPath::Malformed)?),
            _ => kept.push(decoded),
        }
        if is_dots && is_last {
            kept.push(Cow::Borrowed(""));
        }
    }
    Ok(format!("/{}", kept.join("/")))
}

fn decode_segment(name: &str, is_jetty_12: bool) -> Result<Cow<'_, str>, BadPath> {
    let escapes = name.split('%').skip(1);
    if escapes.clone().any(|rest| rest.len() < 2 || !rest.bytes().take(2).all(|b| b.is_ascii_hexdigit())) {
        return Err(BadPath::Malformed);
    }
    let bytes: Cow<'_, [u8]> = percent_decode_str(name).into();
    if bytes.contains(&0) {
        return Err(BadPath::Malformed);
    }
    let is_refused = |b: &u8| b.is_ascii_control() || b"/%\\".contains(b);
    let is_illegal = |b: u8| b"\"<>^`{}[]|\\".contains(&b);
    if is_jetty_12 && (bytes.iter().any(is_refused) || name.bytes().any(is_illegal)) {
        return Err(BadPath::Ambiguous("Bad Request"));
    }
    match String::from_utf8(bytes.into_owned()) {
        Ok(text) => Ok(Cow::Owned(text)),
        Err(_) if is_jetty_12 => Err(BadPath::Ambiguous("Bad Request")),
        // Older versions of Jetty then read the bytes as Latin-1.
        Err(error) => Ok(Cow::Owned(error.into_bytes().into_iter().map(char::from).collect())),
    }
}

#[cfg(test)]
mod tests;
