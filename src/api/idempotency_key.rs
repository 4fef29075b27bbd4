//! The header `Idempotency-Key`, of both faces: a quoted string as its draft standard wants it, or bare as most write it.

use axum::http::HeaderMap;

use crate::service::SubmissionOptions;

/// The key, if one is given.
///
/// # Errors
/// Why it can't be one.
pub(super) fn read(headers: &HeaderMap) -> Result<Option<String>, String> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().map_err(|_| "printable ASCII characters are a key".to_owned());
    key.and_then(SubmissionOptions::parse_key).map(Some)
}
