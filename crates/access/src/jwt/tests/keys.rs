//! Keys that sign tokens in tests.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    rsa::{KeyPairComponents, PublicKeyComponents},
    signature::{
        self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
        RsaKeyPair,
    },
};
use serde_json::{Value, json};

use super::super::{Algorithm, KeySet};
use super::vectors;

/// Returns a JSON value in base64url.
pub(super) fn encoded(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(value.to_string())
}

/// One key of each type. The RSA key is that of RFC 7515, the others are new. Their ids are `RSA`, `EC`, `P-384` and `Ed25519`.
pub(super) struct Keys {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

impl Keys {
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let ecdsa = |algorithm| {
            let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap()
        };
        let [n, e, d, p, q, dp, dq, qi] = vectors::RSA_A2.map(|text| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap());
        Self {
            rsa: RsaKeyPair::from_components(&KeyPairComponents {
                public_key: PublicKeyComponents { n, e },
                d,
                p,
                q,
                dP: dp,
                dQ: dq,
                qInv: qi,
            })
            .unwrap(),
            p256: ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            ed25519: Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).unwrap().as_ref()).unwrap(),
        }
    }

    /// Returns a set that needs no key pairs.
    pub(super) fn fixed() -> KeySet {
        let [n, e, ..] = vectors::RSA_A2;
        KeySet::parse(json!({"keys": [{"kty": "RSA", "n": n, "e": e}]}).to_string().as_bytes()).unwrap()
    }

    pub(super) fn jwk(&self, id: &str) -> Value {
        let point = |kind: &str, key: &EcdsaKeyPair| {
            let (x, y) = key.public_key().as_ref()[1..].split_at(key.public_key().as_ref().len() / 2);
            let encode = |bytes| BASE64_URL_SAFE_NO_PAD.encode(bytes);
            json!({"kty": "EC", "crv": kind, "kid": id, "x": encode(x), "y": encode(y)})
        };
        match id {
            "RSA" => {
                let [n, e, ..] = vectors::RSA_A2;
                json!({"kty": "RSA", "use": "sig", "kid": id, "n": n, "e": e})
            }
            "EC" => point("P-256", &self.p256),
            "P-384" => point("P-384", &self.p384),
            _ => {
                let x = BASE64_URL_SAFE_NO_PAD.encode(self.ed25519.public_key());
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": x})
            }
        }
    }

    pub(super) fn rsa_modulus(&self) -> Vec<u8> {
        BASE64_URL_SAFE_NO_PAD.decode(vectors::RSA_A2[0]).unwrap()
    }

    pub(super) fn set_text(&self) -> String {
        let keys = ["RSA", "EC", "P-384", "Ed25519"].map(|id| self.jwk(id));
        json!({"keys": keys}).to_string()
    }

    pub(super) fn set(&self) -> KeySet {
        KeySet::parse(self.set_text().as_bytes()).unwrap()
    }

    /// Signs claims with the key for the algorithm.
    pub(super) fn token(&self, algorithm: Algorithm, claims: &Value) -> String {
        let id = match algorithm {
            Algorithm::Es256 => "EC",
            Algorithm::Es384 => "P-384",
            Algorithm::EdDsa => "Ed25519",
            _ => "RSA",
        };
        self.token_with_header(algorithm, &json!({"alg": algorithm.as_str(), "kid": id, "typ": "JWT"}), claims)
    }

    pub(super) fn token_with_header(&self, algorithm: Algorithm, header: &Value, claims: &Value) -> String {
        self.sign(algorithm, &format!("{}.{}", encoded(header), encoded(claims)))
    }

    pub(super) fn sign(&self, algorithm: Algorithm, message: &str) -> String {
        let random = SystemRandom::new();
        let rsa = |padding: &'static dyn signature::RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(padding, &random, message.as_bytes(), &mut signature).unwrap();
            signature
        };
        let ecdsa = |key: &EcdsaKeyPair| key.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec();
        let signature = match algorithm {
            Algorithm::Rs256 => rsa(&signature::RSA_PKCS1_SHA256),
            Algorithm::Rs384 => rsa(&signature::RSA_PKCS1_SHA384),
            Algorithm::Rs512 => rsa(&signature::RSA_PKCS1_SHA512),
            Algorithm::Ps256 => rsa(&signature::RSA_PSS_SHA256),
            Algorithm::Ps384 => rsa(&signature::RSA_PSS_SHA384),
            Algorithm::Ps512 => rsa(&signature::RSA_PSS_SHA512),
            Algorithm::Es256 => ecdsa(&self.p256),
            Algorithm::Es384 => ecdsa(&self.p384),
            Algorithm::EdDsa => self.ed25519.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }
}
