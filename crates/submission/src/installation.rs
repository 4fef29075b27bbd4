//! The installation: the id in the labels of its pods, and the key that signs the identity of its driver pods.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

use super::SubmissionId;

/// Length of a truncated signature in bytes: 128 bits.
const SIGNATURE: usize = 16;

/// An installation: one database and all replicas that use it.
///
/// Labels can be copied, so they prove nothing. A driver pod therefore carries a signed identity: the submission and the
/// attempt, with a code (HMAC-SHA-256, RFC 2104) over both, the namespace and the pod's name. Only this installation can create
/// such a code, and a copy on another pod doesn't match that pod's name.
#[derive(Clone, PartialEq, Eq)]
pub struct Installation {
    pub id: Uuid,
    key: Vec<u8>,
}

impl Installation {
    pub fn new(id: Uuid, key: Vec<u8>) -> Self {
        Self { id, key }
    }

    /// Returns the identity of a driver pod: `<submission>/<attempt>/<signature in hex>`.
    pub fn identity(&self, submission: &SubmissionId, attempt: i32, namespace: &str, pod: &str) -> String {
        let signature = self.code(submission.as_str(), attempt, namespace, pod).finalize().into_bytes();
        let mut identity = format!("{submission}/{attempt}/");
        identity.reserve(2 * SIGNATURE);
        for byte in signature.iter().take(SIGNATURE) {
            identity.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or_default()));
        }
        identity
    }

    /// Verifies the identity that a pod of this name carries; `None` if it isn't this installation's, or not this pod's.
    pub fn verify(&self, identity: &str, namespace: &str, pod: &str) -> Option<(SubmissionId, i32)> {
        let (of, signature) = identity.rsplit_once('/')?;
        let (submission, attempt) = of.split_once('/')?;
        let attempt = attempt.parse().ok()?;
        let signature = bytes(signature)?;
        self.code(submission, attempt, namespace, pod).verify_truncated_left(&signature).ok()?;
        Some((submission.parse().ok()?, attempt))
    }

    /// Derives a key for another purpose, which must not look like an identity: HMAC-SHA-256 of the purpose.
    pub fn key_for(&self, purpose: &str) -> [u8; 32] {
        self.hmac().chain_update(purpose).finalize().into_bytes().into()
    }

    fn code(&self, submission: &str, attempt: i32, namespace: &str, pod: &str) -> Hmac<Sha256> {
        // None of the names contains a slash.
        self.hmac().chain_update(format!("{submission}/{attempt}/{namespace}/{pod}"))
    }

    fn hmac(&self) -> Hmac<Sha256> {
        // Keys of any length are valid.
        let code = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key);
        code.unwrap_or_else(|_| <Hmac<Sha256> as KeyInit>::new(&Default::default()))
    }
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
}
