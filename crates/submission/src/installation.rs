//! The installation: the id in the labels of its pods, and the key that signs the identity of its driver pods.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

use super::id::SubmissionId;

/// Length of a truncated signature in bytes: 128 bits.
const SIGNATURE: usize = 16;

/// An installation: one database and all replicas that use it. Clones share its keys.
///
/// Labels can be copied, so they prove nothing. A driver pod therefore carries a signed identity: the submission and the
/// attempt, with a code (HMAC-SHA-256, RFC 2104) over both, the namespace and the pod's name. Only this installation can create
/// such a code, and a copy on another pod doesn't match that pod's name.
///
/// The installation's own key signs identities, because it is never lost, and each replica of each release has it. What is a
/// permission by itself (URLs, tickets, cursors) is signed with a [`SigningKey`], which a copy of the database need not contain.
#[derive(Clone)]
pub struct Installation {
    pub id: Uuid,
    keys: Arc<RwLock<Arc<Keys>>>,
}

/// The keys of an installation.
struct Keys {
    own: Vec<u8>,
    /// The first signs; all verify.
    signing: Vec<SigningKey>,
}

/// A key that signs, or that has signed.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    key: Vec<u8>,
    /// Until when it signed. It verifies only what was made before.
    until: Option<DateTime<Utc>>,
}

/// A key for one purpose.
#[derive(Clone, PartialEq, Eq)]
pub struct DerivedKey {
    pub key: [u8; 32],
    until: Option<DateTime<Utc>>,
}

impl DerivedKey {
    /// Returns a key that counts without a limit.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key, until: None }
    }

    /// Returns whether the key was still in use at this time, so that what it signed then is valid.
    pub fn counts_at(&self, time: DateTime<Utc>) -> bool {
        self.until.is_none_or(|until| time < until)
    }
}

impl SigningKey {
    pub fn new(key: Vec<u8>, until: Option<DateTime<Utc>>) -> Self {
        Self { key, until }
    }

    /// Returns a text that names the key and doesn't show it.
    pub fn fingerprint(&self) -> String {
        hex(&self.derived("fingerprint").key[..8])
    }

    fn derived(&self, purpose: &str) -> DerivedKey {
        DerivedKey { key: derived(&self.key, purpose), until: self.until }
    }
}

impl Installation {
    /// Returns an installation whose own key signs everything.
    pub fn new(id: Uuid, key: Vec<u8>) -> Self {
        let signing = vec![SigningKey::new(key.clone(), None)];
        Self { id, keys: Arc::new(RwLock::new(Arc::new(Keys { own: key, signing }))) }
    }

    /// Replaces the keys: the one that signs identities, and the others, of which the first signs.
    pub fn replace_keys(&self, own: Vec<u8>, signing: Vec<SigningKey>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Keys { own, signing });
    }

    fn keys(&self) -> Arc<Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the identity of a driver pod: `<submission>/<attempt>/<signature in hex>`.
    pub fn identity(&self, submission: &SubmissionId, attempt: i32, namespace: &str, pod: &str) -> String {
        let signature = code(&self.keys().own, submission.as_str(), attempt, namespace, pod).finalize().into_bytes();
        format!("{submission}/{attempt}/{}", hex(&signature[..SIGNATURE]))
    }

    /// Verifies the identity that a pod of this name carries; `None` if it isn't this installation's, or not this pod's. Former
    /// keys verify, too: a driver may outlive several.
    pub fn verify(&self, identity: &str, namespace: &str, pod: &str) -> Option<(SubmissionId, i32)> {
        let (of, signature) = identity.rsplit_once('/')?;
        let (submission, attempt) = of.split_once('/')?;
        let attempt = attempt.parse().ok()?;
        let signature = bytes(signature)?;
        let keys = self.keys();
        let mut all = [&keys.own].into_iter().chain(keys.signing.iter().map(|key| &key.key));
        all.any(|key| code(key, submission, attempt, namespace, pod).verify_truncated_left(&signature).is_ok())
            .then(|| Some((submission.parse().ok()?, attempt)))?
    }

    /// Derives the key that signs for a purpose, which must not look like an identity: HMAC-SHA-256 of the purpose.
    pub fn key_for(&self, purpose: &str) -> [u8; 32] {
        let keys = self.keys();
        keys.signing.first().map_or_else(|| derived(&keys.own, purpose), |key| key.derived(purpose).key)
    }

    /// Derives the keys that verify for a purpose; the first signs.
    pub fn keys_for(&self, purpose: &str) -> Vec<DerivedKey> {
        self.keys().signing.iter().map(|key| key.derived(purpose)).collect()
    }

    /// Derives a key for a purpose that must come out the same whatever keys the encryption key file has.
    pub fn own_key_for(&self, purpose: &str) -> [u8; 32] {
        derived(&self.keys().own, purpose)
    }
}

fn derived(key: &[u8], purpose: &str) -> [u8; 32] {
    hmac(key).chain_update(purpose).finalize().into_bytes().into()
}

fn code(key: &[u8], submission: &str, attempt: i32, namespace: &str, pod: &str) -> Hmac<Sha256> {
    // None of the names contains a slash.
    hmac(key).chain_update(format!("{submission}/{attempt}/{namespace}/{pod}"))
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    // Keys of any length are valid.
    let code = <Hmac<Sha256> as KeyInit>::new_from_slice(key);
    code.unwrap_or_else(|_| <Hmac<Sha256> as KeyInit>::new(&Default::default()))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from_digit(digit.into(), 16).unwrap_or_default()).collect()
}

/// Parses a signature in hex; `None` if its length is wrong.
fn bytes(hex: &str) -> Option<[u8; SIGNATURE]> {
    let mut bytes = [0; SIGNATURE];
    if hex.len() != 2 * SIGNATURE || !hex.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Omits the key.
impl fmt::Debug for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Installation").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_valid_for_one_pod_of_one_installation() {
        let ours = Installation::new(Uuid::nil(), vec![7; 32]);
        let id: SubmissionId = "driver-20260101000000-0001".parse().unwrap();
        let identity = ours.identity(&id, 2, "spark", "pi-1-driver");
        assert_eq!(ours.verify(&identity, "spark", "pi-1-driver"), Some((id, 2)));
        assert_eq!(ours.verify(&identity, "spark", "pi-2-driver"), None, "a copy on another pod");
        assert_eq!(ours.verify(&identity, "other", "pi-1-driver"), None, "in another namespace");
        assert_eq!(Installation::new(Uuid::nil(), vec![8; 32]).verify(&identity, "spark", "pi-1-driver"), None);
        let (of, signature) = identity.rsplit_once('/').unwrap();
        assert_eq!(signature.len(), 2 * SIGNATURE);
        for forged in [
            identity.replace("-0001/", "-0002/"),
            identity.replace("/2/", "/1/"),
            of.to_owned(),
            format!("{of}/"),
            format!("{of}/{}", &signature[2..]),
            format!("{of}/{}", "0".repeat(2 * SIGNATURE)),
            format!("{of}/{}", "é".repeat(SIGNATURE)),
            String::new(),
        ] {
            assert_eq!(ours.verify(&forged, "spark", "pi-1-driver"), None, "{forged}");
        }
        assert!(!format!("{ours:?}").contains('7'), "{ours:?}");
    }

    #[test]
    fn a_former_key_verifies_identities_and_what_was_made_before_it_was_replaced() {
        let ours = Installation::new(Uuid::nil(), vec![7; 32]);
        let id: SubmissionId = "driver-20260101000000-0001".parse().unwrap();
        let (identity, url) = (ours.identity(&id, 1, "spark", "pi-1-driver"), ours.key_for("url"));
        let replaced = Utc::now();
        let keys = [SigningKey::new(vec![9; 32], None), SigningKey::new(vec![7; 32], Some(replaced))];
        let shared = ours.clone();
        ours.replace_keys(vec![8; 32], keys.to_vec());
        assert_eq!(shared.verify(&identity, "spark", "pi-1-driver"), Some((id.clone(), 1)), "of a live driver");
        assert_ne!(shared.identity(&id, 1, "spark", "pi-1-driver"), identity);
        let of_url = shared.keys_for("url");
        assert_eq!((of_url[0].key, of_url[1].key), (shared.key_for("url"), url));
        assert!(of_url[0].counts_at(replaced) && !of_url[1].counts_at(replaced));
        assert!(of_url[1].counts_at(replaced - chrono::TimeDelta::seconds(1)));
        let fingerprints = keys.map(|key| key.fingerprint());
        assert!(fingerprints[0] != fingerprints[1] && fingerprints[0].len() == 16, "{fingerprints:?}");
    }
}
