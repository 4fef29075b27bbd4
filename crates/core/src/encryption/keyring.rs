//! Keys of an encryption key file, and what they encrypt.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    error::Unspecified,
    hmac,
    rand::{SecureRandom, SystemRandom},
};

use sparkgate_store::Sealed;
use sparkgate_submission::SubmissionId;

const LONGEST_ID: usize = 63;

/// The keys of a file. The first encrypts; all decrypt.
pub(super) struct Keyring(Vec<Key>);

struct Key {
    id: String,
    key: LessSafeKey,
    /// The same key, for what is derived from it.
    root: hmac::Key,
}

/// A line of the file that isn't a key. The line itself may be one, so it isn't quoted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    #[error("it has no key: write one with `echo \"k1:$(head -c 32 /dev/urandom | base64)\"`")]
    Empty,
    #[error("line {line}: {fault}")]
    Line { line: usize, fault: KeyFault },
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    #[error("expected ID:KEY")]
    Form,
    #[error("an id has up to 63 letters, digits, `-`, `_` and `.`")]
    Id,
    #[error("line {0} has the same id")]
    Repeated(usize),
    #[error("the key isn't base64")]
    Base64,
    #[error("the key has {0} bytes instead of 32")]
    Length(usize),
}

/// Encrypted objects can't be read with the keys of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecryptable {
    #[error(
        "the objects are encrypted with the key {0:?}, which this gateway doesn't have: add it to the encryption key file \
         (SPARKGATE_ENCRYPTION_KEY_FILE)"
    )]
    Missing(String),
    #[error(
        "the key {0:?} of the encryption key file (SPARKGATE_ENCRYPTION_KEY_FILE) doesn't decrypt the objects: they were \
         encrypted with another key of this id, or changed"
    )]
    Wrong(String),
}

impl Keyring {
    /// Parses a file: one `ID:KEY` on each line, the key as base64 of 32 bytes. Empty lines and lines that begin with `#` are
    /// comments.
    ///
    /// # Errors
    /// [`KeyringError`] for the first line that isn't a key.
    pub(super) fn parse(content: &str) -> Result<Self, KeyringError> {
        let mut keys = Vec::<(usize, Key)>::new();
        for (line, text) in (1..).zip(content.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let key = Key::parse(text).and_then(|key| match keys.iter().find(|(_, other)| other.id == key.id) {
                Some((line, _)) => Err(KeyFault::Repeated(*line)),
                None => Ok(key),
            });
            keys.push((line, key.map_err(|fault| KeyringError::Line { line, fault })?));
        }
        if keys.is_empty() {
            return Err(KeyringError::Empty);
        }
        Ok(Self(keys.into_iter().map(|(_, key)| key).collect()))
    }

    /// Returns the ids of the keys; the first encrypts.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| key.id.as_str())
    }

    /// Derives a key from each key and an installation's own.
    pub(super) fn roots(&self, own: &[u8]) -> impl Iterator<Item = [u8; 32]> {
        self.0.iter().map(|key| {
            let mut context = hmac::Context::with_key(&key.root);
            context.update(b"sparkgate/installation/");
            context.update(own);
            let tag = context.sign();
            std::array::from_fn(|at| tag.as_ref()[at])
        })
    }

    /// Encrypts the objects of an attempt with the first key.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(super) fn seal(&self, text: &str, id: &SubmissionId, attempt: i32) -> Result<Sealed, Unspecified> {
        self.seal_for(text, place(id, attempt))
    }

    /// Encrypts a text with the first key. It decrypts only for the same place.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(super) fn seal_for(&self, text: &str, place: String) -> Result<Sealed, Unspecified> {
        let Key { id: key_id, key, .. } = self.0.first().ok_or(Unspecified)?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce)?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + text.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(text.as_bytes());
        let aad = Aad::from(place);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(nonce, aad, &mut sealed[NONCE_LEN..])?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(Sealed { key: key_id.clone(), text: sealed })
    }

    /// Decrypts the objects of an attempt.
    ///
    /// # Errors
    /// [`Undecryptable`].
    pub(super) fn open(&self, sealed: &Sealed, id: &SubmissionId, attempt: i32) -> Result<String, Undecryptable> {
        self.open_for(sealed, place(id, attempt))
    }

    /// Decrypts a text that was encrypted for a place.
    ///
    /// # Errors
    /// [`Undecryptable`].
    pub(super) fn open_for(&self, sealed: &Sealed, place: String) -> Result<String, Undecryptable> {
        let key = self.0.iter().find(|key| key.id == sealed.key);
        let Key { key, .. } = key.ok_or_else(|| Undecryptable::Missing(sealed.key.clone()))?;
        let wrong = || Undecryptable::Wrong(sealed.key.clone());
        let (nonce, text) = sealed.text.split_at_checked(NONCE_LEN).ok_or_else(wrong)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|Unspecified| wrong())?;
        let mut text = text.to_vec();
        let aad = Aad::from(place);
        let length = key.open_in_place(nonce, aad, &mut text).map_err(|Unspecified| wrong())?.len();
        text.truncate(length);
        String::from_utf8(text).map_err(|_| wrong())
    }
}

/// Writes the ids of the keys.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

impl Key {
    fn parse(text: &str) -> Result<Self, KeyFault> {
        let (id, key) = text.split_once(':').ok_or(KeyFault::Form)?;
        let is_of_id = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
        if !(1..=LONGEST_ID).contains(&id.len()) || !id.chars().all(is_of_id) {
            return Err(KeyFault::Id);
        }
        let bytes = BASE64_STANDARD.decode(key).map_err(|_| KeyFault::Base64)?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|Unspecified| KeyFault::Length(bytes.len()))?;
        let root = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        Ok(Self { id: id.to_owned(), key: LessSafeKey::new(key), root })
    }
}

/// Returns what a ciphertext is bound to, so that it decrypts for no other attempt.
fn place(id: &SubmissionId, attempt: i32) -> String {
    format!("sparkgate/manifest/{id}/{attempt}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, byte: u8) -> String {
        format!("{id}:{}\n", BASE64_STANDARD.encode([byte; 32]))
    }

    fn id(number: u32) -> SubmissionId {
        format!("driver-20260101000000-{number:04}").parse().unwrap()
    }

    #[test]
    fn every_key_decrypts_and_the_first_encrypts() {
        let (a, b) = (line("a", 1), line("b", 2));
        let old = Keyring::parse(&a).unwrap();
        let both = Keyring::parse(&format!("# keys\n\n{b}{a}")).unwrap();
        let sealed = old.seal("text", &id(1), 1).unwrap();
        assert_eq!((sealed.key.as_str(), both.open(&sealed, &id(1), 1).as_deref()), ("a", Ok("text")));
        assert!(!String::from_utf8_lossy(&sealed.text).contains("text"));
        let again = old.seal("text", &id(1), 1).unwrap();
        assert_ne!(sealed, again, "each has a nonce of its own");
        let sealed = both.seal("text", &id(1), 1).unwrap();
        assert_eq!(
            (sealed.key.as_str(), old.open(&sealed, &id(1), 1)),
            ("b", Err(Undecryptable::Missing("b".to_owned())))
        );
    }

    #[test]
    fn a_ciphertext_decrypts_for_its_own_attempt_only() {
        let keys = Keyring::parse(&line("a", 1)).unwrap();
        let sealed = keys.seal("text", &id(1), 1).unwrap();
        let wrong = Err(Undecryptable::Wrong("a".to_owned()));
        assert_eq!((keys.open(&sealed, &id(1), 2), keys.open(&sealed, &id(2), 1)), (wrong.clone(), wrong.clone()));
        let other = Keyring::parse(&line("a", 2)).unwrap();
        assert_eq!(other.open(&sealed, &id(1), 1), wrong);
        for text in [Vec::new(), sealed.text[..20].to_vec(), [&sealed.text[..], &[0]].concat()] {
            assert_eq!(keys.open(&Sealed { text, ..sealed.clone() }, &id(1), 1), wrong);
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_line_and_without_its_content() {
        let good = line("a", 1);
        let fault = |content: &str| match Keyring::parse(content) {
            Err(KeyringError::Line { line, fault }) => (line, fault),
            other => panic!("{content}: {other:?}"),
        };
        assert_eq!(Keyring::parse("\n# none\n").unwrap_err(), KeyringError::Empty);
        assert_eq!(fault(&format!("{good}hunter2")), (2, KeyFault::Form));
        assert_eq!(fault(&format!("\n{}", line("a b", 1))), (2, KeyFault::Id));
        assert_eq!(fault(&line("", 1)), (1, KeyFault::Id));
        assert_eq!(fault(&format!("{good}#\n{good}")), (3, KeyFault::Repeated(1)));
        assert_eq!(fault("a:hunter2!"), (1, KeyFault::Base64));
        assert_eq!(fault("a:aHVudGVyMg=="), (1, KeyFault::Length(7)));
        assert!(!Keyring::parse("a:hunter2!").unwrap_err().to_string().contains("hunter2"));
    }
}
