//! A secret in a file of the client.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

/// A secret that is read from a file and written to one, and that no other text shows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(super) struct Secret(SecretString);

impl Secret {
    pub(super) fn text(&self) -> &SecretString {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        secret.0.expose_secret().to_owned()
    }
}
