//! Credentials, the access file, and identities of pods.

use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use ring::{
    hmac,
    signature::{Ed25519KeyPair, KeyPair},
};
use serde::Deserialize;
use sparkgate_access::{
    Access, CertificateSubject, ClientCertificate, OidcIssuer, Pattern,
    jwt::{KeySet, SharedSecret, unverified_issuer},
};
use sparkgate_policy::{Policy, PolicyDocument};
use sparkgate_submission::Installation;
use uuid::Uuid;

use super::input::text;

/// A file with one issuer, which accepts the algorithm of [`Keys`].
const FILE: &str = "
authentication:
  oidc:
    - {name: corp, issuer: https://id.example.org, audience: sparkgate, algorithms: [EdDSA], groupsClaim: realm.roles}
tenants: {a: {namespaces: [a]}}
";
const SECRET: [u8; 64] = [7; 64];

/// The issuer, its keys, and the secret that it shares with Spark's filter.
struct Keys {
    issuer: OidcIssuer,
    pair: Ed25519KeyPair,
    set: KeySet,
    secret: SharedSecret,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let access = Access::parse(FILE).expect("the file is valid");
    let issuer = access.authentication().and_then(|authentication| authentication.oidc.first()).expect("one issuer");
    let pair = Ed25519KeyPair::from_seed_unchecked(&[5; 32]).expect("a seed has 32 bytes");
    let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key());
    let set = format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "{x}"}}]}}"#);
    Keys {
        issuer: issuer.clone(),
        set: KeySet::parse(set.as_bytes()).expect("the set is valid"),
        secret: SharedSecret::parse(&BASE64_URL_SAFE_NO_PAD.encode(SECRET)).expect("the secret is long enough"),
        pair,
    }
});

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("a time")
}

/// A token. Two lines are a header and claims, which the target signs, so that inputs get behind the check of the signature; one
/// line is a token as it is sent.
pub fn jwt(data: &[u8]) {
    let Some(text) = text(data) else { return };
    match text.split_once('\n') {
        None => token(text, false),
        Some((header, claims)) => {
            let encoded = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
            let message = format!("{}.{}", encoded(header), encoded(claims));
            let signed = |signature: &[u8]| format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
            token(&signed(KEYS.pair.sign(message.as_bytes()).as_ref()), true);
            for algorithm in [hmac::HMAC_SHA256, hmac::HMAC_SHA512] {
                let key = hmac::Key::new(algorithm, &SECRET);
                token(&signed(hmac::sign(&key, message.as_bytes()).as_ref()), true);
            }
        }
    }
}

fn token(token: &str, is_signed: bool) {
    let issuer = unverified_issuer(token);
    if let Ok(principal) = KEYS.issuer.authenticate(token, &KEYS.set, now()) {
        assert!(is_signed, "only the target has the key");
        assert!(principal.subject().starts_with("corp:"), "{principal:?}");
        assert!(principal.expires().is_some_and(|end| end > now()), "{principal:?}");
        assert_eq!(issuer.as_deref(), Ok("https://id.example.org"));
    }
    for require_expiration in [false, true] {
        if let Ok(principal) = KEYS.secret.authenticate(token, require_expiration, now()) {
            assert!(is_signed, "only the target has the secret");
            assert!(principal.subject().starts_with("spark:"), "{principal:?}");
            assert!(principal.expires().map_or(!require_expiration, |end| end > now()), "{principal:?}");
        }
    }
}

/// The public keys of an issuer.
pub fn key_set(data: &[u8]) {
    let Ok(set) = KeySet::parse(data) else { return };
    let header = r#"{"alg": "EdDSA", "kid": "a"}"#;
    let claims = r#"{"iss": "https://id.example.org", "aud": "sparkgate", "sub": "alice", "exp": 1800000300}"#;
    let message = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(header), BASE64_URL_SAFE_NO_PAD.encode(claims));
    let token = format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode([0; 64]));
    assert!(KEYS.issuer.authenticate(&token, &set, now()).is_err(), "no key made this signature");
}

/// The access file, with the policies of its tenants.
pub fn access(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let access = match Access::parse(text) {
        Ok(access) => access,
        Err(error) => return assert!(!error.faults.is_empty(), "an error says why"),
    };
    let mut namespaces: Vec<&str> = Vec::new();
    for tenant in access.tenants() {
        let name = tenant.default_namespace().expect("a tenant has a namespace");
        assert!(!name.starts_with("kube-") && !namespaces.contains(&name), "{name} has one tenant");
        namespaces.push(name);
        if let Some(policy) = &tenant.policy
            && let Ok(document) = PolicyDocument::deserialize(policy)
        {
            let _ = Policy::compile(document, &tenant.service_accounts);
        }
    }
}

/// A pattern for names in the first line, and a name in the second.
pub fn pattern(data: &[u8]) {
    let Some((pattern, name)) = text(data).and_then(|text| text.split_once('\n')) else { return };
    let Ok(parsed) = Pattern::parse(pattern) else { return };
    assert_eq!(parsed.matches(name), is_defined(pattern.as_bytes(), name.as_bytes()), "{pattern:?} and {name:?}");
}

/// The definition of a match: `*` stands for any bytes but a slash.
fn is_defined(pattern: &[u8], name: &[u8]) -> bool {
    // Whether the pattern so far matches the name up to each place.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for symbol in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            let before = at.checked_sub(1);
            next[at] = match symbol {
                b'*' => reached[at] || before.is_some_and(|before| name[before] != b'/' && next[before]),
                symbol => before.is_some_and(|before| name[before] == *symbol && reached[before]),
            };
        }
        reached = next;
    }
    reached[name.len()]
}

/// The names in a client certificate.
pub fn certificate(data: &[u8]) {
    let Ok(certificate) = ClientCertificate::parse(data) else { return };
    for subject in [CertificateSubject::CommonName, CertificateSubject::Uri] {
        if let Ok(principal) = certificate.principal(subject) {
            assert!(principal.subject().starts_with("certificate:"), "{principal:?}");
        }
    }
}

/// The identity of a pod, the pod's namespace and its name, each in a line.
pub fn identity(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (identity, namespace, pod) = (line(), line(), line());
    let ours = Installation::new(Uuid::nil(), vec![7; 32]);
    assert_eq!(Installation::new(Uuid::nil(), vec![8; 32]).verify(identity, namespace, pod), None, "another key");
    if let Some((submission, attempt)) = ours.verify(identity, namespace, pod) {
        let written = ours.identity(&submission, attempt, namespace, pod);
        assert_eq!(ours.verify(&written, namespace, pod), Some((submission, attempt)), "{identity:?}");
        assert_eq!(ours.verify(&written, namespace, &format!("{pod}2")), None, "a copy on another pod");
    }
}
