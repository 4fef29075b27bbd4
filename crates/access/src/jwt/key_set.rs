//! The public keys of an issuer: RFC 7517.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{algorithm::Algorithm, compact::Compact, error::JwtError, json};

/// The greatest size of a key set in bytes.
const LARGEST: usize = 256 * 1024;

/// The greatest number of keys in a set.
const MOST_KEYS: usize = 100;

/// The sizes of an RSA modulus in bits: RFC 7518, section 3.3 demands 2048; `ring` verifies up to 8192.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The public keys of an issuer that verify signatures.
#[derive(Clone)]
pub struct KeySet {
    keys: Vec<Key>,
}

impl KeySet {
    /// Parses a key set, the document at an issuer's `jwks_uri`. Keys for encryption, weak ones, malformed ones and those of
    /// unknown types are left out (RFC 7517, section 5).
    ///
    /// # Errors
    /// The text is no key set, has too many keys, or none that verifies signatures.
    pub fn parse(jwks: &[u8]) -> Result<Self, KeySetError> {
        if jwks.len() > LARGEST {
            return Err(KeySetError::TooLarge);
        }
        let mut set = json::object(jwks).ok_or(KeySetError::Malformed)?;
        let Some(Value::Array(keys)) = set.remove("keys") else { return Err(KeySetError::Malformed) };
        if keys.len() > MOST_KEYS {
            return Err(KeySetError::TooMany(keys.len()));
        }
        let keys: Vec<_> = keys.iter().filter_map(Value::as_object).filter_map(Key::parse).collect();
        if keys.is_empty() { Err(KeySetError::Empty) } else { Ok(Self { keys }) }
    }

    /// Verifies the signature of a token with the key that it names, or, if it names none, with each key that fits its algorithm.
    pub(super) fn verify(&self, token: &Compact<'_>, algorithm: Algorithm) -> Result<(), JwtError> {
        let named: Vec<_> = self.keys.iter().filter(|key| token.key_id.is_none() || key.id == token.key_id).collect();
        let mut fitting = named.iter().filter(|key| key.fits(algorithm)).peekable();
        if fitting.peek().is_none() {
            let wrong_type = token.key_id.is_some() && !named.is_empty();
            return Err(if wrong_type { JwtError::Algorithm } else { JwtError::UnknownKey });
        }
        if fitting.any(|key| key.verifies(algorithm, token)) { Ok(()) } else { Err(JwtError::Signature) }
    }
}

/// Writes the ids of the keys.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| key.id.as_deref().unwrap_or("-"))).finish()
    }
}

/// Why a text is no key set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeySetError {
    #[error("the key set has more than {LARGEST} bytes")]
    TooLarge,
    #[error("the key set is no JSON object with `keys`, or has a member twice")]
    Malformed,
    #[error("the key set has {0} keys, more than {MOST_KEYS}")]
    TooMany(usize),
    #[error("the key set has no key that verifies signatures (RSA from 2048 bits, P-256, P-384, Ed25519)")]
    Empty,
}

#[derive(Clone)]
struct Key {
    id: Option<String>,
    /// The one algorithm that the key is for, if it says so.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Clone)]
enum Material {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// An uncompressed point.
    P256(Vec<u8>),
    /// An uncompressed point.
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl Key {
    /// Reads a key; `None` if it isn't one that verifies signatures.
    fn parse(members: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if members.contains_key("use") && text("use") != Some("sig") {
            return None;
        }
        if let Some(operations) = members.get("key_ops") {
            operations.as_array()?.iter().find(|operation| *operation == "verify")?;
        }
        let algorithm = match members.get("alg") {
            None => None,
            Some(name) => Some(name.as_str()?.parse().ok()?),
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => rsa(text("n")?, text("e")?)?,
            ("EC", Some("P-256")) => Material::P256(point(text("x")?, text("y")?, 32)?),
            ("EC", Some("P-384")) => Material::P384(point(text("x")?, text("y")?, 48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(decode(text("x")?).filter(|x| x.len() == 32)?),
            _ => return None,
        };
        Some(Self { id: text("kid").map(str::to_owned), algorithm, material })
    }

    /// Returns whether the key is one for the algorithm: RFC 8725, section 3.1.
    fn fits(&self, algorithm: Algorithm) -> bool {
        use Algorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        let of_type = match self.material {
            Material::Rsa(_) => matches!(algorithm, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512),
            Material::P256(_) => algorithm == Es256,
            Material::P384(_) => algorithm == Es384,
            Material::Ed25519(_) => algorithm == EdDsa,
        };
        of_type && self.algorithm.is_none_or(|only| only == algorithm)
    }

    fn verifies(&self, algorithm: Algorithm, token: &Compact<'_>) -> bool {
        let plain = |algorithm: &'static dyn VerificationAlgorithm, key: &Vec<u8>| {
            UnparsedPublicKey::new(algorithm, key).verify(token.message, &token.signature).is_ok()
        };
        match (&self.material, algorithm) {
            (Material::Rsa(key), _) => {
                rsa_parameters(algorithm).is_some_and(|rsa| key.verify(rsa, token.message, &token.signature).is_ok())
            }
            (Material::P256(key), Algorithm::Es256) => plain(&signature::ECDSA_P256_SHA256_FIXED, key),
            (Material::P384(key), Algorithm::Es384) => plain(&signature::ECDSA_P384_SHA384_FIXED, key),
            (Material::Ed25519(key), Algorithm::EdDsa) => plain(&signature::ED25519, key),
            _ => false,
        }
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return None,
    })
}

/// Reads an RSA key: modulus and exponent, big-endian.
fn rsa(n: &str, e: &str) -> Option<Material> {
    let number = |text: &str| {
        let bytes = decode(text)?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Some(bytes[zeros..].to_vec()).filter(|bytes| !bytes.is_empty())
    };
    let (n, e) = (number(n)?, number(e)?);
    let bits = 8 * n.len() - n[0].leading_zeros() as usize;
    RSA_BITS.contains(&bits).then_some(Material::Rsa(RsaPublicKeyComponents { n, e }))
}

/// Reads a point of a curve: RFC 7518, section 6.2.1. Each coordinate has the full length.
fn point(x: &str, y: &str, length: usize) -> Option<Vec<u8>> {
    let coordinate = |text: &str| decode(text).filter(|bytes| bytes.len() == length);
    Some([vec![4], coordinate(x)?, coordinate(y)?].concat())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}
