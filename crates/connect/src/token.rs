//! The token between the gateway and the server of a session.

use sha2::{Digest, Sha256};

use sparkgate_submission::{Installation, SubmissionId};

/// Returns the token that a new server gets, and its digest.
pub(crate) fn new(installation: &Installation, id: &SubmissionId) -> (String, Vec<u8>) {
    let token = hex(&installation.key_for(&purpose(id)));
    let digest = digest(&token);
    (token, digest)
}

/// Returns the token with this digest. `None` if no key of the installation made it any more.
pub(crate) fn with_digest(installation: &Installation, id: &SubmissionId, wanted: &[u8]) -> Option<String> {
    let keys = installation.keys_for(&purpose(id));
    keys.iter().map(|key| hex(&key.key)).find(|token| digest(token) == wanted)
}

fn purpose(id: &SubmissionId) -> String {
    format!("token of the Spark Connect server of {id}")
}

fn digest(token: &str) -> Vec<u8> {
    Sha256::digest(token).to_vec()
}

fn hex(key: &[u8; 32]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use sparkgate_submission::SigningKey;

    use super::*;

    #[test]
    fn a_server_keeps_its_token_when_another_key_signs() {
        let id: SubmissionId = "driver-20260102030405-0001".parse().unwrap();
        let other: SubmissionId = "driver-20260102030405-0002".parse().unwrap();
        let installation = Installation::new(Default::default(), vec![7; 32]);
        let (token, digest) = new(&installation, &id);
        assert_ne!(new(&installation, &other).0, token);
        let (old, next) = (SigningKey::new(vec![7; 32], None), SigningKey::new(vec![8; 32], None));
        installation.replace_keys(vec![7; 32], vec![next.clone(), old]);
        assert_ne!(new(&installation, &id).0, token);
        assert_eq!(with_digest(&installation, &id, &digest), Some(token));
        installation.replace_keys(vec![8; 32], vec![next]);
        assert_eq!(with_digest(&installation, &id, &digest), None);
    }
}
