//! The header `Idempotency-Key` of both APIs: a quoted string, as its draft standard requires, or bare, as most clients
//! send it.

use axum::http::HeaderMap;

use sparkgate_service::SubmissionOptions;

/// Returns the key, if the request has one.
///
/// # Errors
/// The reason for which the header's value is not a valid key.
pub fn read(headers: &HeaderMap) -> Result<Option<String>, String> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().map_err(|_| "a key consists of printable ASCII characters".to_owned());
    key.and_then(SubmissionOptions::parse_key).map(Some)
}
