//! Encryption of objects that contain secrets, with the keys of a file.

mod keyring;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use crate::redaction;
use keyring::Keyring;
use sparkgate_common::{
    error::Error,
    watched::{Watched, time_to_look},
};
use sparkgate_store::Sealed;
use sparkgate_submission::SubmissionId;

pub use keyring::Undecryptable;
pub use keyring::{KeyFault, KeyringError};

/// The name of the file in metrics.
const METRIC: &str = "encryption_keys";

/// The encryption key file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("reading the encryption key file {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is no encryption key file", path.display())]
    Invalid { path: PathBuf, source: KeyringError },
}

/// The objects of an attempt as they are stored.
pub struct StoredObjects {
    /// Without secrets if there are encrypted ones.
    pub objects: String,
    pub sealed: Option<Sealed>,
}

/// The current keys, and the file that they come from. Without a file, nothing is encrypted.
#[derive(Debug)]
pub struct EncryptionKeys(Option<(PathBuf, Watched<Keyring>)>);

impl EncryptionKeys {
    /// Returns the keys of a gateway without a file: none.
    pub fn none() -> Self {
        Self(None)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`KeyFileError`].
    pub fn open(path: PathBuf) -> Result<Self, KeyFileError> {
        let content = read(&path)?;
        let keys = Watched::new(METRIC, parse(&path, &content)?, &content);
        Ok(Self(Some((path, keys))))
    }

    /// Returns the ids of the keys, the one that encrypts first.
    pub fn ids(&self) -> Vec<String> {
        self.current().iter().flat_map(|keys| keys.ids()).map(str::to_owned).collect()
    }

    /// Returns the objects of an attempt as they are stored. If there are a key and something to hide, that is without secrets,
    /// and encrypted with them.
    ///
    /// # Errors
    /// [`Error::Internal`] if the objects can't be encrypted.
    pub fn seal(&self, objects: String, id: &SubmissionId, attempt: i32) -> Result<StoredObjects, Error> {
        let Some(keys) = self.current() else { return Ok(StoredObjects { objects, sealed: None }) };
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| {
            Error::Internal("encrypting the objects of a submission".to_owned(), source)
        };
        match redaction::manifest(&objects).map_err(|error| failed(error.into()))? {
            None => Ok(StoredObjects { objects, sealed: None }),
            Some(redacted) => {
                let sealed = keys.seal(&objects, id, attempt).map_err(|error| failed(error.into()))?;
                Ok(StoredObjects { objects: redacted, sealed: Some(sealed) })
            }
        }
    }

    /// Decrypts the objects of an attempt.
    ///
    /// # Errors
    /// [`Undecryptable`].
    pub fn unseal(&self, sealed: &Sealed, id: &SubmissionId, attempt: i32) -> Result<String, Undecryptable> {
        let keys = self.current().ok_or_else(|| Undecryptable::Missing(sealed.key.clone()))?;
        keys.open(sealed, id, attempt)
    }

    /// Encrypts a text for a place, such as a row; `None` without keys.
    ///
    /// # Errors
    /// [`Error::Internal`] if it can't be encrypted.
    pub fn seal_text(&self, text: &str, place: &str) -> Result<Option<Sealed>, Error> {
        let Some(keys) = self.current() else { return Ok(None) };
        let sealed = keys.seal_for(text, place.to_owned());
        sealed.map(Some).map_err(|error| Error::Internal(format!("encrypting {place}"), error.into()))
    }

    /// Decrypts a text for its place.
    ///
    /// # Errors
    /// [`Undecryptable`].
    pub fn unseal_text(&self, sealed: &Sealed, place: &str) -> Result<String, Undecryptable> {
        let keys = self.current().ok_or_else(|| Undecryptable::Missing(sealed.key.clone()))?;
        keys.open_for(sealed, place.to_owned())
    }

    /// Derives a key from each key of the file and this one; neither alone is enough. The one of the key that encrypts first.
    pub fn roots(&self, own: &[u8]) -> Vec<[u8; 32]> {
        self.current().iter().flat_map(|keys| keys.roots(own)).collect()
    }

    /// Returns whether there is a key file.
    pub fn are_set(&self) -> bool {
        self.current().is_some()
    }

    fn current(&self) -> Option<Arc<Keyring>> {
        self.0.as_ref().map(|(_, keys)| keys.current())
    }

    /// Reads the file again whenever it changes, until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        while time_to_look(&stop).await {
            self.reload_if_changed();
        }
    }

    /// Compares the file with what was read last. A file that can't be used changes nothing but the log.
    pub fn reload_if_changed(&self) {
        let Some((path, keys)) = &self.0 else { return };
        match keys.take(read(path), |content| parse(path, &content)) {
            None => {}
            Some(Ok(keys)) => tracing::info!(path = %path.display(), ?keys, "encryption key file reloaded"),
            Some(Err(trouble)) => {
                tracing::error!("the encryption key file is not reloaded, the previous keys stay valid: {trouble}");
            }
        }
    }
}

fn read(path: &Path) -> Result<String, KeyFileError> {
    fs::read_to_string(path).map_err(|source| KeyFileError::Unreadable { path: path.to_owned(), source })
}

fn parse(path: &Path, content: &str) -> Result<Keyring, KeyFileError> {
    Keyring::parse(content).map_err(|source| KeyFileError::Invalid { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::NamedTempFile;

    use super::*;

    /// Thirty-two zero bytes.
    const ZEROS: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    #[test]
    fn a_changed_file_is_read_again_and_a_wrong_one_changes_nothing() {
        let mut file = NamedTempFile::new().unwrap();
        writeln!(file, "a:{ZEROS}").unwrap();
        let keys = EncryptionKeys::open(file.path().to_owned()).unwrap();
        for (content, ids) in [
            (format!("b:{ZEROS}\na:{ZEROS}\n"), vec!["b", "a"]),
            ("b".to_owned(), vec!["b", "a"]),
            (format!("b:{ZEROS}\n"), vec!["b"]),
        ] {
            fs::write(file.path(), content).unwrap();
            keys.reload_if_changed();
            assert_eq!(keys.ids(), ids);
        }
        let path = file.path().to_owned();
        drop(file);
        keys.reload_if_changed();
        assert_eq!(keys.ids(), ["b"]);
        assert!(matches!(EncryptionKeys::open(path), Err(KeyFileError::Unreadable { .. })));
    }
}
