//! Signatures in URLs: what only this installation can make.

use subtle::ConstantTimeEq;

use sparkgate_submission::{DerivedKey, Installation};

/// Length of a truncated signature in bytes: 128 bits.
pub(crate) const LENGTH: usize = 16;

/// Returns the signature of a text, in hex.
pub(crate) fn signature_of(installation: &Installation, text: &str) -> String {
    in_hex(&installation.key_for(text))
}

/// Returns the key with which a text was signed, in constant time; `None` if this is no signature of the text.
pub(crate) fn signed_with(installation: &Installation, text: &str, signature: &str) -> Option<DerivedKey> {
    let is_signature = |key: &DerivedKey| in_hex(&key.key).as_bytes().ct_eq(signature.as_bytes()).into();
    installation.keys_for(text).into_iter().find(is_signature)
}

fn in_hex(key: &[u8; 32]) -> String {
    key[..LENGTH].iter().map(|byte| format!("{byte:02x}")).collect()
}
