//! The bodies of responses.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, combinators::UnsyncBoxBody};

/// What breaks a body off.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// The body of a response, or of a request on its way to a driver.
pub type RelayBody = UnsyncBoxBody<Bytes, BoxError>;

/// Returns the body of a response whose headers end it.
pub(crate) fn empty() -> RelayBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}
