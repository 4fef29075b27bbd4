//! Statuses of gRPC, in the forms in which a server sends them.

use http::{
    HeaderMap, HeaderName, HeaderValue, Response,
    header::{self, CONTENT_TYPE},
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::body::{RelayBody, empty};

/// The media type of gRPC over HTTP/2.
pub(crate) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
pub(crate) const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// The characters of a message that are escaped, beside those that aren't ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The status of an RPC that the gateway refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub code: Code,
    /// What the client shows.
    pub message: String,
}

/// The codes of gRPC that the gateway uses. Clients repeat a request only after `Unavailable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    InvalidArgument,
    NotFound,
    PermissionDenied,
    FailedPrecondition,
    Unimplemented,
    Internal,
    Unavailable,
    Unauthenticated,
}

impl Code {
    /// Returns the number, as it is sent, and the word in metrics.
    fn forms(self) -> (&'static str, &'static str) {
        match self {
            Self::InvalidArgument => ("3", "invalid_argument"),
            Self::NotFound => ("5", "not_found"),
            Self::PermissionDenied => ("7", "permission_denied"),
            Self::FailedPrecondition => ("9", "failed_precondition"),
            Self::Unimplemented => ("12", "unimplemented"),
            Self::Internal => ("13", "internal"),
            Self::Unavailable => ("14", "unavailable"),
            Self::Unauthenticated => ("16", "unauthenticated"),
        }
    }

    /// Returns the word in metrics.
    pub fn as_str(self) -> &'static str {
        self.forms().1
    }
}

impl Status {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The same request may succeed soon.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, message)
    }

    /// Returns the trailers that end a stream with this status.
    pub fn trailers(&self) -> HeaderMap {
        let message = utf8_percent_encode(&self.message, ESCAPED).to_string();
        let mut trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static(self.code.forms().0))]);
        trailers.extend(HeaderValue::try_from(message).ok().map(|message| (MESSAGE, message)));
        trailers
    }

    /// Returns the response to a request that was refused: headers that are trailers, too.
    pub fn response(&self) -> Response<RelayBody> {
        let mut response = Response::new(empty());
        *response.headers_mut() = self.trailers();
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        response
    }
}

/// Returns whether headers are those of a message of gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given == "application/grpc" || given.starts_with("application/grpc+") || given.starts_with("application/grpc;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_escaped_as_grpc_does() {
        let trailers = Status::unavailable("100 % — \"später\"\n").trailers();
        assert_eq!(trailers[STATUS], "14");
        assert_eq!(trailers[MESSAGE], "100 %25 %E2%80%94 \"sp%C3%A4ter\"%0A");
    }

    #[test]
    fn grpc_has_a_media_type_with_suffixes() {
        for (given, is) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;charset=x", true),
            ("application/grpc-web", false),
            ("text/html", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(given))]);
            assert_eq!(is_grpc(&headers), is, "{given}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }
}
