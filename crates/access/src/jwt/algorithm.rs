//! The signature algorithms of tokens.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// A signature algorithm with a public key: RFC 7518, section 3.1, and RFC 8037. `none` and those with a shared secret have no
/// place here: a token that names one of them can't be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    /// Contains all algorithms.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Returns the name in the header `alg` and in the access file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == text).ok_or(UnknownAlgorithm)
    }
}

/// A text is the name of no algorithm that tokens may be signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an algorithm is RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or EdDSA")]
pub struct UnknownAlgorithm;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_without_a_public_key_do_not_exist() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        for text in ["none", "None", "HS256", "HS384", "HS512", "rs256", "ES256K", "RSA1_5", ""] {
            assert_eq!(text.parse::<Algorithm>(), Err(UnknownAlgorithm), "{text}");
        }
    }
}
