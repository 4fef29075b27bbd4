//! Registered claims of a token: RFC 7519, section 4.1.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::error::JwtError;

/// Checks `exp`, `nbf` and `iat`, and returns until when the token is accepted, which is its end and the leeway.
pub(super) fn check_times(
    claims: &Map<String, Value>,
    leeway: Duration,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, JwtError> {
    let latest = now.checked_add_signed(chrono::Duration::from_std(leeway).unwrap_or_default()).unwrap_or(now);
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|time| time > latest) {
            return Err(JwtError::NotYetValid);
        }
    }
    let Some(end) = time(claims, "exp")? else { return Ok(None) };
    let end = end.checked_add_signed(latest - now).unwrap_or(end);
    if end <= now { Err(JwtError::Expired) } else { Ok(Some(end)) }
}

/// Returns a claim that is a `NumericDate`: seconds since 1970, possibly with a fraction (RFC 7519, section 2).
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<DateTime<Utc>>, JwtError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let time = match (value.as_i64(), value.as_f64()) {
        (Some(seconds), _) => DateTime::from_timestamp(seconds, 0),
        // A cast of a number that is too large gives the greatest one, which is no time.
        (None, Some(seconds)) => DateTime::from_timestamp_millis((seconds * 1000.0) as i64),
        (None, None) => None,
    };
    time.map(Some).ok_or(JwtError::Malformed)
}

/// Checks that the token is meant for one of the audiences.
pub(super) fn check_audience(claims: &Map<String, Value>, audiences: &[String]) -> Result<(), JwtError> {
    let accepted = |value: &Value| value.as_str().is_some_and(|name| audiences.iter().any(|audience| audience == name));
    let fine = match claims.get("aud") {
        Some(Value::Array(names)) => names.iter().any(accepted),
        Some(name) => accepted(name),
        None => false,
    };
    if fine { Ok(()) } else { Err(JwtError::Audience) }
}
