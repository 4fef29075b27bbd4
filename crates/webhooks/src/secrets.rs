//! The secrets of a webhook: what messages are signed with, and how (Standard Webhooks).

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use sparkgate_common::error::Error;
use sparkgate_core::encryption::EncryptionKeys;
use sparkgate_spark::Refusal;
use sparkgate_store::{Sealed, StoredSecrets};

/// What each signing secret begins with.
const PREFIX: &str = "whsec_";
/// The bytes of a generated secret, and the limits of Standard Webhooks.
const LENGTH: usize = 32;
const SHORTEST: usize = 24;
const LONGEST: usize = 64;

/// A secret that signs messages: `whsec_`, and 24 to 64 bytes as base64.
#[derive(Clone, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct SigningSecret(String);

impl SigningSecret {
    /// Generates a secret.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(super) fn generate() -> Result<Self, Error> {
        let mut bytes = [0; LENGTH];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|error| Error::Internal("generating the secret of a webhook".to_owned(), error.into()))?;
        Ok(Self(format!("{PREFIX}{}", BASE64_STANDARD.encode(bytes))))
    }

    /// Parses a secret of a client.
    ///
    /// # Errors
    /// A [`Refusal`] of `field`, which doesn't quote it.
    pub(super) fn parse(text: &SecretString, field: &str) -> Result<Self, Refusal> {
        let secret = Self(text.expose_secret().to_owned());
        if (SHORTEST..=LONGEST).contains(&secret.bytes().len()) {
            return Ok(secret);
        }
        let reason = format!("a secret is `{PREFIX}` and {SHORTEST} to {LONGEST} bytes as base64 (Standard Webhooks)");
        Err(Refusal::field(field, reason))
    }

    pub(super) fn text(&self) -> SecretString {
        self.0.clone().into()
    }

    /// Signs a message: `v1,` and the HMAC-SHA-256 of its id, its time and its body as base64.
    fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.bytes()));
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", BASE64_STANDARD.encode(context.sign()))
    }

    /// Returns the bytes; none if the text is no secret.
    fn bytes(&self) -> Vec<u8> {
        self.0.strip_prefix(PREFIX).and_then(|text| BASE64_STANDARD.decode(text).ok()).unwrap_or_default()
    }
}

/// All secrets of a webhook.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Secrets {
    /// `None` if messages aren't signed: those for the server of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<SigningSecret>,
    /// The one before, as long as both are valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<SigningSecret>,
    /// What the receiver gets as `Authorization: Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bearer_token: Option<String>,
}

/// Writes no secret.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    pub(super) fn new(current: SigningSecret, bearer_token: Option<&SecretString>) -> Self {
        let bearer_token = bearer_token.map(|token| token.expose_secret().to_owned());
        Self { current: Some(current), previous: None, bearer_token }
    }

    /// Returns the secrets of messages that aren't signed.
    pub(super) fn unsigned(bearer_token: Option<&SecretString>) -> Self {
        let bearer_token = bearer_token.map(|token| token.expose_secret().to_owned());
        Self { current: None, previous: None, bearer_token }
    }

    /// Returns the secrets after a rotation.
    pub(super) fn rotated(self, current: SigningSecret) -> Self {
        Self { previous: self.current, current: Some(current), ..self }
    }

    pub(super) fn bearer_token(&self) -> Option<&str> {
        self.bearer_token.as_deref()
    }

    /// Returns the header `webhook-signature` of a message; `None` if it isn't signed.
    pub(super) fn signatures(&self, id: &str, timestamp: i64, body: &[u8], with_previous: bool) -> Option<String> {
        let mut signatures = self.current.as_ref()?.sign(id, timestamp, body);
        if let Some(previous) = self.previous.as_ref().filter(|_| with_previous) {
            signatures = format!("{signatures} {}", previous.sign(id, timestamp, body));
        }
        Some(signatures)
    }

    /// Returns the secrets as they are stored: encrypted if there are keys.
    pub(super) fn seal(&self, webhook: &str, keys: &EncryptionKeys) -> Result<StoredSecrets, Error> {
        let text = serde_json::to_string(self)
            .map_err(|error| Error::Internal("writing the secrets of a webhook".to_owned(), error.into()))?;
        Ok(match keys.seal_text(&text, &place(webhook))? {
            Some(sealed) => sealed.into(),
            None => StoredSecrets { secrets: text.into_bytes(), secrets_key: None },
        })
    }

    /// Reads stored secrets.
    ///
    /// # Errors
    /// [`Error::Internal`] if they can't be decrypted.
    pub(super) fn unseal(webhook: &str, stored: StoredSecrets, keys: &EncryptionKeys) -> Result<Self, Error> {
        let unreadable = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::Internal(format!("reading the secrets of webhook {webhook}"), error)
        };
        let StoredSecrets { secrets, secrets_key } = stored;
        let text = match secrets_key {
            Some(key) => keys
                .unseal_text(&Sealed { key, text: secrets }, &place(webhook))
                .map_err(|error| unreadable(error.into()))?,
            None => String::from_utf8(secrets).map_err(|error| unreadable(error.into()))?,
        };
        serde_json::from_str(&text).map_err(|error| unreadable(error.into()))
    }
}

/// Returns what a ciphertext is bound to, so that it decrypts for no other webhook.
fn place(webhook: &str) -> String {
    format!("sparkgate/webhook/{webhook}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference implementations.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let secret = SigningSecret::parse(&"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(), "secret").unwrap();
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn after_a_rotation_both_secrets_sign() {
        let (old, new) = (SigningSecret::generate().unwrap(), SigningSecret::generate().unwrap());
        let secrets = Secrets::new(old.clone(), None).rotated(new.clone());
        let (old, new) = (old.sign("m", 1, b"b"), new.sign("m", 1, b"b"));
        assert_eq!(secrets.signatures("m", 1, b"b", true), Some(format!("{new} {old}")));
        assert_eq!(secrets.signatures("m", 1, b"b", false), Some(new));
        assert_eq!(Secrets::unsigned(None).signatures("m", 1, b"b", true), None);
    }

    #[test]
    fn a_secret_of_a_client_has_the_form_of_the_standard() {
        for text in
            ["", "whsec_", "secret", "whsec_!", "whsec_aGk=", &format!("whsec_{}", BASE64_STANDARD.encode([0; 65]))]
        {
            let refusal = SigningSecret::parse(&(*text).into(), "secret").map(|_| ()).unwrap_err();
            assert_eq!(refusal.field, "secret");
        }
        assert!(SigningSecret::parse(&SigningSecret::generate().unwrap().text(), "secret").is_ok());
    }
}
