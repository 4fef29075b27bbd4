//! Tokens for Spark's `org.apache.spark.ui.JWSFilter`, which are signed with a secret that both sides have.

use std::{fmt, time::Duration};

use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use chrono::{DateTime, Utc};
use ring::hmac;
use thiserror::Error;

use super::{claims::check_times, compact::Compact, error::JwtError};
use crate::principal::{Principal, Provider};

/// The subject of a token that names none.
const NO_SUBJECT: &str = "jws";

/// base64url with or without padding, as `io.jsonwebtoken.io.Decoders.BASE64URL` reads it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secret of Spark's `JWSFilter`: its parameter `secretKey`, base64url of at least 256 bits.
#[derive(Clone)]
pub struct SharedSecret {
    /// The algorithms that the secret is long enough for (RFC 7518, section 3.2), by their names.
    keys: Vec<(&'static str, hmac::Key)>,
}

impl SharedSecret {
    /// Parses the content of a secret file. A newline at its end doesn't count.
    ///
    /// # Errors
    /// The text is no base64url, or the secret is shorter than 256 bits: `JWSFilter` refuses it too.
    pub fn parse(text: &str) -> Result<Self, SharedSecretError> {
        let secret = BASE64.decode(text.trim()).map_err(|_| SharedSecretError::Malformed)?;
        let algorithms =
            [("HS256", hmac::HMAC_SHA256, 32), ("HS384", hmac::HMAC_SHA384, 48), ("HS512", hmac::HMAC_SHA512, 64)];
        let fitting = algorithms.into_iter().filter(|(_, _, bytes)| secret.len() >= *bytes);
        let keys: Vec<_> = fitting.map(|(name, algorithm, _)| (name, hmac::Key::new(algorithm, &secret))).collect();
        if keys.is_empty() { Err(SharedSecretError::Weak(8 * secret.len())) } else { Ok(Self { keys }) }
    }

    /// Verifies a token, and returns its principal: `spark:<sub>`, or `spark:jws` if the token has no subject. As in Spark, a
    /// token may be without an expiry, unless `require_expiration` is set, and the clocks have to agree.
    ///
    /// # Errors
    /// The token isn't signed with this secret, or isn't valid now.
    pub fn authenticate(
        &self,
        token: &str,
        require_expiration: bool,
        now: DateTime<Utc>,
    ) -> Result<Principal, JwtError> {
        let token = Compact::parse(token)?;
        let key = self.keys.iter().find(|(name, _)| *name == token.algorithm).ok_or(JwtError::Algorithm)?;
        // Compares in constant time.
        hmac::verify(&key.1, token.message, &token.signature).map_err(|_| JwtError::Signature)?;
        let claims = token.claims()?;
        let expires = check_times(&claims, Duration::ZERO, now)?;
        if require_expiration && expires.is_none() {
            return Err(JwtError::NoExpiry);
        }
        let subject = match claims.get("sub") {
            None => NO_SUBJECT,
            Some(subject) => subject.as_str().ok_or(JwtError::Malformed)?,
        };
        let principal = Principal::new(Provider::SparkJws, subject).map_err(JwtError::Subject)?;
        Ok(principal.with_expiry(expires))
    }
}

/// Omits the secret.
impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSecret").finish_non_exhaustive()
    }
}

/// Why a text is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SharedSecretError {
    #[error("the secret is no base64url")]
    Malformed,
    #[error("the secret has {0} bits: it needs 256 at least")]
    Weak(usize),
}
