//! The signing key of an issuer of tokens.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};

/// A key that signs tokens with ES256.
#[derive(Debug)]
pub struct TokenKey {
    id: String,
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl TokenKey {
    /// Creates a key with an id.
    ///
    /// # Panics
    /// The key can't be created.
    pub fn create(id: &str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("the key that was created");
        Self { id: id.to_owned(), pair, random }
    }

    /// Returns a token with these claims.
    ///
    /// # Panics
    /// The token can't be signed.
    pub fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "ES256", "typ": "JWT", "kid": self.id})), part(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// Returns the set of keys that an issuer with this key publishes (RFC 7517).
    pub fn set(&self) -> Value {
        // An uncompressed point: 4, and two coordinates of 32 bytes.
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|coordinate| BASE64_URL_SAFE_NO_PAD.encode(coordinate));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": self.id, "use": "sig"}]})
    }
}
