//! Why a token is refused.

use thiserror::Error;

use crate::principal::InvalidName;

/// Why a token is refused. The texts help a caller with a token of its own, and repeat nothing of the token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JwtError {
    #[error("the token is larger than 16 KiB")]
    TooLarge,
    #[error("the token is malformed")]
    Malformed,
    #[error("the token is of another kind than an access token or an ID token")]
    Type,
    #[error("the token requires an extension that is not supported")]
    Critical,
    #[error("the token's signature algorithm is not allowed")]
    Algorithm,
    /// The issuer may have new keys: the caller fetches them and verifies again.
    #[error("the token's key is unknown")]
    UnknownKey,
    #[error("the token's signature is invalid")]
    Signature,
    #[error("the token is from another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token has expired: log in again")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
    #[error("the token has no expiry")]
    NoExpiry,
    #[error("the token lacks a claim that this gateway requires")]
    Claim,
    #[error("the token's subject is invalid")]
    Subject(#[source] InvalidName),
    #[error("the token's email address is not verified")]
    Email,
    #[error("the token belongs to another sign-in")]
    Nonce,
}
