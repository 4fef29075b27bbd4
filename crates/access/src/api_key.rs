//! API keys: `sg_<id>_<secret and checksum>`.

use std::fmt;

use chrono::{DateTime, Utc};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::principal::{Grant, InvalidName, Principal, Provider};

const PREFIX: &str = "sg_";

/// Length of an id in hexadecimal digits: 64 bits.
const ID: usize = 16;

/// Length of a secret in hexadecimal digits: 256 bits.
const SECRET: usize = 64;

/// Length of the checksum in hexadecimal digits.
const CHECKSUM: usize = 8;

/// An API key. Its text is shown once; only its [`KeyDigest`] is stored.
///
/// The id is public and finds the stored digest. The checksum (CRC-32 of what stands before it) proves nothing: it tells a key
/// from other texts, so that a scanner for secrets reports it, and a key that was copied badly is named as such.
#[derive(Clone)]
pub struct ApiKey {
    text: SecretString,
}

impl ApiKey {
    /// Generates a key from the random numbers of the operating system.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn generate() -> Result<Self, NoRandomNumbers> {
        let mut bytes = [0; (ID + SECRET) / 2];
        SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
        let (id, secret) = bytes.split_at(ID / 2);
        let mut text = format!("{PREFIX}{}_{}", hex(id), hex(secret));
        text.push_str(&checksum(&text));
        Ok(Self { text: text.into() })
    }

    /// Parses the text of a key, as a client sends it.
    ///
    /// # Errors
    /// The text is no API key, or has a typing error.
    pub fn parse(text: &str) -> Result<Self, ApiKeyError> {
        let rest = text.strip_prefix(PREFIX).ok_or(ApiKeyError::Foreign)?;
        let (id, secret) = rest.split_once('_').ok_or(ApiKeyError::Incomplete)?;
        if id.len() != ID || secret.len() != SECRET + CHECKSUM || !is_hex(id) || !is_hex(secret) {
            return Err(ApiKeyError::Incomplete);
        }
        let (signed, sum) = text.split_at(text.len() - CHECKSUM);
        if checksum(signed) != sum {
            return Err(ApiKeyError::Checksum);
        }
        Ok(Self { text: text.into() })
    }

    /// Returns whether a credential looks like an API key, so that no other provider is asked about it.
    pub fn is_one(credential: &str) -> bool {
        credential.starts_with(PREFIX)
    }

    /// Returns the public id.
    pub fn id(&self) -> &str {
        self.text.expose_secret().get(PREFIX.len()..PREFIX.len() + ID).unwrap_or_default()
    }

    /// Returns the text.
    pub fn text(&self) -> &SecretString {
        &self.text
    }

    /// Returns what is stored of the key.
    pub fn digest(&self) -> KeyDigest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, self.text.expose_secret().as_bytes()).as_ref());
        KeyDigest(bytes)
    }
}

/// Writes the id only.
impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({PREFIX}{}_…)", self.id())
    }
}

/// The stored form of an API key: SHA-256 of its text. A slow hash would add nothing, as a secret of 256 bits can't be guessed.
#[derive(Clone)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// Takes a stored digest.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns what is stored.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns whether it is the digest of this key. The time that it takes doesn't depend on where they differ.
    pub fn matches(&self, key: &ApiKey) -> bool {
        self.0.ct_eq(&key.digest().0).into()
    }
}

/// Omits the digest.
impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(…)")
    }
}

impl Principal {
    /// Creates the principal of an API key, `key:<id>`, with the roles that the key carries.
    ///
    /// # Errors
    /// The id can't be a name.
    pub fn for_api_key(
        id: &str,
        display: &str,
        grants: Vec<Grant>,
        expires: Option<DateTime<Utc>>,
    ) -> Result<Self, InvalidName> {
        let principal = Self::new(Provider::ApiKey, id)?;
        Ok(principal.with_display(display).with_grants(grants).with_expiry(expires))
    }
}

/// Why a text is no API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ApiKeyError {
    #[error("the credential is no API key: one begins with `{PREFIX}`")]
    Foreign,
    #[error("the API key is incomplete or has other characters: copy the whole key")]
    Incomplete,
    #[error("the API key has a typing error: its checksum is wrong")]
    Checksum,
}

/// The operating system has no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("can't generate an API key: the operating system has no random numbers")]
pub struct NoRandomNumbers;

fn checksum(text: &str) -> String {
    hex(&crc32fast::hash(text.as_bytes()).to_be_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_generated_key_is_parsed_and_matches_its_digest_only() {
        let (key, other) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        let text = key.text().expose_secret();
        assert_eq!(text.len(), 3 + 16 + 1 + 64 + 8);
        let parsed = ApiKey::parse(text).unwrap();
        assert_eq!(parsed.id(), key.id());
        assert_eq!(parsed.id().len(), ID);
        let stored = KeyDigest::from_bytes(*key.digest().as_bytes());
        assert!(stored.matches(&parsed));
        assert!(!stored.matches(&other));
        assert_ne!(key.id(), other.id());
    }

    #[test]
    fn the_format_and_the_digest_of_keys_stay_as_they_are() {
        // Stored digests and issued keys must be valid after an update. CRC-32 and SHA-256 by Python's zlib and hashlib.
        let text = format!("sg_0123456789abcdef_{}2274b1b4", "00ff".repeat(16));
        let key = ApiKey::parse(&text).unwrap();
        assert_eq!(key.id(), "0123456789abcdef");
        assert_eq!(hex(key.digest().as_bytes()), "9a52628449a8c25ea999678c2825a4f4240cbf0693aa9720daf82638dfbd7136");
    }

    #[test]
    fn each_typing_error_in_a_key_is_noticed() {
        let key = ApiKey::generate().unwrap();
        let text = key.text().expose_secret();
        for at in (3..text.len()).filter(|at| *at != 19) {
            let mut wrong = text.to_owned();
            wrong.replace_range(at..=at, if &text[at..=at] == "0" { "1" } else { "0" });
            assert_eq!(ApiKey::parse(&wrong).unwrap_err(), ApiKeyError::Checksum, "at {at}");
        }
        for wrong in [&text[..text.len() - 1], &text.to_uppercase().replace("SG_", "sg_"), "sg_", "sg__", "sg_é_é"] {
            assert_eq!(ApiKey::parse(wrong).unwrap_err(), ApiKeyError::Incomplete, "{wrong}");
        }
        for foreign in ["", "SG_1", "eyJhbGciOiJSUzI1NiJ9.e30.AA", &format!(" {text}")] {
            assert_eq!(ApiKey::parse(foreign).unwrap_err(), ApiKeyError::Foreign, "{foreign}");
            assert!(!ApiKey::is_one(foreign));
        }
    }

    #[test]
    fn debug_output_omits_secret_and_digest() {
        let key = ApiKey::generate().unwrap();
        let secret = &key.text().expose_secret()[20..84];
        let shown = format!("{key:?} {:?} {:?}", key.digest(), key.text());
        assert!(shown.contains(key.id()));
        assert!(!shown.contains(secret) && !shown.contains(&hex(key.digest().as_bytes())), "{shown}");
        assert!(!shown.contains(&format!("{:?}", key.digest().as_bytes())), "{shown}");
    }

    #[test]
    fn the_principal_of_a_key_has_its_roles_and_its_end() {
        let end = DateTime::from_timestamp(1000, 0);
        let grants = vec![Grant::in_tenant(crate::role::Role::Submitter, "analytics").unwrap()];
        let principal = Principal::for_api_key("0123456789abcdef", "Nightly", grants.clone(), end).unwrap();
        assert_eq!(principal.subject(), "key:0123456789abcdef");
        assert_eq!((principal.display(), principal.expires()), ("Nightly", end));
        assert_eq!(principal.grants(), grants);
    }

    proptest! {
        #[test]
        fn no_text_makes_parsing_panic(text in ".{0,100}", rest in "[0-9a-f_é]{80,95}") {
            let _ = ApiKey::parse(&text);
            let _ = ApiKey::parse(&format!("sg_{rest}"));
        }
    }
}
