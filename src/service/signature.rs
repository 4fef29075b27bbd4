//! Signatures in URLs: what only this installation can make.

use subtle::ConstantTimeEq;

use crate::submission::Installation;

/// Length of a truncated signature in bytes: 128 bits.
pub(super) const LENGTH: usize = 16;

/// Returns the signature of a text, in hex.
pub(super) fn signature_of(installation: &Installation, text: &str) -> String {
    installation.key_for(text)[..LENGTH].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether it is that of the text, in constant time.
pub(super) fn is_signature_of(installation: &Installation, text: &str, signature: &str) -> bool {
    signature_of(installation, text).as_bytes().ct_eq(signature.as_bytes()).into()
}
