//! The compact form of a JWS: RFC 7515, section 7.1.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::{error::JwtError, json};

/// The greatest size of a token in bytes. Servers accept hardly larger headers.
const LARGEST: usize = 16 * 1024;

/// A token whose signature has not been verified.
pub(super) struct Compact<'a> {
    pub(super) algorithm: String,
    pub(super) key_id: Option<String>,
    /// The kind of token, if its header names one.
    pub(super) kind: Option<String>,
    /// What is signed: header and payload in base64url.
    pub(super) message: &'a [u8],
    pub(super) signature: Vec<u8>,
    payload: &'a str,
}

impl<'a> Compact<'a> {
    /// Reads the header.
    pub(super) fn parse(token: &'a str) -> Result<Self, JwtError> {
        if token.len() > LARGEST {
            return Err(JwtError::TooLarge);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(JwtError::Malformed)?;
        let (header, payload) = message.split_once('.').ok_or(JwtError::Malformed)?;
        if payload.contains('.') {
            return Err(JwtError::Malformed);
        }
        let mut header = decode(header).as_deref().and_then(json::object).ok_or(JwtError::Malformed)?;
        // RFC 7515, section 4.1.11: an extension that isn't understood invalidates the token, and none is understood here.
        // RFC 7797, section 6, demands `crit` with `b64`; a token without it could be read in two ways.
        if header.contains_key("crit") || header.contains_key("b64") {
            return Err(JwtError::Critical);
        }
        let mut text = |name: &str| match header.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(JwtError::Malformed),
        };
        Ok(Self {
            algorithm: text("alg")?.ok_or(JwtError::Malformed)?,
            key_id: text("kid")?,
            kind: text("typ")?,
            message: message.as_bytes(),
            signature: decode(signature).ok_or(JwtError::Malformed)?,
            payload,
        })
    }

    /// Reads the claims. Call it once the signature is verified.
    pub(super) fn claims(&self) -> Result<Map<String, Value>, JwtError> {
        decode(self.payload).as_deref().and_then(json::object).ok_or(JwtError::Malformed)
    }
}

/// Decodes base64url without padding (RFC 7515, section 2), which has one form for each text.
fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

/// Returns the claim `iss` of a token, unverified: it selects the issuer that the token is then verified for, and proves nothing.
///
/// # Errors
/// The token is too large or malformed, or has no issuer.
pub fn unverified_issuer(token: &str) -> Result<String, JwtError> {
    match Compact::parse(token)?.claims()?.remove("iss") {
        Some(Value::String(issuer)) => Ok(issuer),
        Some(_) => Err(JwtError::Malformed),
        None => Err(JwtError::Issuer),
    }
}

/// Returns the claims of a token, unverified: they prove nothing. `None` if it is no token with claims.
pub fn unverified_claims(token: &str) -> Option<Map<String, Value>> {
    Compact::parse(token).ok()?.claims().ok()
}
