//! Tokens that other parties signed, and tokens that are wrong in one respect each.

mod keys;
mod vectors;

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use proptest::prelude::*;
use ring::hmac;
use serde_json::{Value, json};

use super::*;
use crate::{
    authentication::{ClaimPath, OidcIssuer},
    principal::{InvalidName, Provider},
};
use keys::{Keys, encoded};

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn issuer() -> OidcIssuer {
    OidcIssuer {
        name: "corp".to_owned(),
        issuer: "https://id.example.org".to_owned(),
        audiences: vec!["sparkgate".to_owned(), "other".to_owned()],
        algorithms: Algorithm::ALL.to_vec(),
        subject_claim: ClaimPath::new("sub").unwrap(),
        groups_claim: ClaimPath::new("realm_access.roles"),
        required_claims: BTreeMap::new(),
        leeway: Duration::from_secs(60),
        client_id: None,
        ca_file: None,
        jwks_uri: None,
        console: None,
    }
}

fn claims() -> Value {
    let now = now().timestamp();
    json!({
        "iss": "https://id.example.org", "aud": "sparkgate", "sub": "alice", "iat": now, "nbf": now, "exp": now + 300,
        "realm_access": {"roles": ["data-eng", 7]}, "name": "Alice",
    })
}

/// Returns the claims with one changed; `null` removes it.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}

fn refusal(issuer: &OidcIssuer, keys: &Keys, token: &str) -> JwtError {
    issuer.authenticate(token, &keys.set(), now()).unwrap_err()
}

#[test]
fn a_token_becomes_a_principal_with_every_algorithm() {
    let keys = Keys::new();
    for algorithm in Algorithm::ALL {
        let token = keys.token(algorithm, &claims());
        let principal = issuer().authenticate(&token, &keys.set(), now()).unwrap();
        assert_eq!(principal.subject(), "corp:alice", "{algorithm}");
        assert_eq!(principal.groups().iter().collect::<Vec<_>>(), ["corp:data-eng"]);
        assert_eq!(principal.display(), "Alice");
        assert_eq!(principal.provider(), &Provider::Oidc("corp".to_owned()));
        assert_eq!(principal.expires(), DateTime::from_timestamp(1_800_000_360, 0), "the end and the leeway");
        assert_eq!(unverified_issuer(&token).unwrap(), "https://id.example.org");
    }
}

#[test]
fn an_id_token_is_for_one_client_and_one_sign_in() {
    let keys = Keys::new();
    let claims = |change: &dyn Fn(&mut Value)| {
        let mut claims = with("aud", json!("console"));
        claims["nonce"] = json!("n");
        change(&mut claims);
        keys.token(Algorithm::Es256, &claims)
    };
    let verify = |token: &str| issuer().verify_id_token(token, &keys.set(), "console", "n", now());
    for fine in [
        claims(&|_| ()),
        claims(&|claims| claims["azp"] = json!("console")),
        claims(&|claims| (claims["aud"], claims["azp"]) = (json!(["console", "other"]), json!("console"))),
    ] {
        assert_eq!(verify(&fine), Ok(()));
    }
    let remove = |claims: &mut Value, name: &str| drop(claims.as_object_mut().unwrap().remove(name));
    for (token, error) in [
        (claims(&|claims| claims["aud"] = json!("sparkgate")), JwtError::Audience),
        (claims(&|claims| claims["aud"] = json!(["console", "other"])), JwtError::Audience),
        (claims(&|claims| claims["azp"] = json!("other")), JwtError::Audience),
        (claims(&|claims| claims["iss"] = json!("https://other.example.org")), JwtError::Issuer),
        (claims(&|claims| claims["exp"] = json!(now().timestamp() - 3600)), JwtError::Expired),
        (claims(&|claims| remove(claims, "exp")), JwtError::NoExpiry),
        (claims(&|claims| claims["nonce"] = json!("m")), JwtError::Nonce),
        (claims(&|claims| remove(claims, "nonce")), JwtError::Nonce),
        (Keys::new().token(Algorithm::Es256, &with("aud", json!("console"))), JwtError::Signature),
    ] {
        assert_eq!(verify(&token), Err(error));
    }
}

#[test]
fn each_claim_is_checked() {
    let keys = Keys::new();
    let seconds = |seconds: i64| json!(now().timestamp() + seconds);
    for (name, value, error) in [
        ("iss", json!("https://id.example.org/"), JwtError::Issuer),
        ("iss", Value::Null, JwtError::Issuer),
        ("iss", json!(["https://id.example.org"]), JwtError::Issuer),
        ("aud", json!("sparkgate2"), JwtError::Audience),
        ("aud", json!(["a", "b"]), JwtError::Audience),
        ("aud", json!([]), JwtError::Audience),
        ("aud", json!({"sparkgate": "sparkgate"}), JwtError::Audience),
        ("aud", Value::Null, JwtError::Audience),
        ("exp", seconds(-60), JwtError::Expired),
        ("exp", Value::Null, JwtError::NoExpiry),
        ("exp", json!("1800000300"), JwtError::Malformed),
        ("exp", json!(1e300), JwtError::Malformed),
        ("exp", json!(u64::MAX), JwtError::Malformed),
        ("exp", json!(i64::MIN), JwtError::Malformed),
        ("nbf", seconds(61), JwtError::NotYetValid),
        ("nbf", json!(true), JwtError::Malformed),
        ("iat", seconds(61), JwtError::NotYetValid),
        ("sub", Value::Null, JwtError::Claim),
        ("sub", json!(7), JwtError::Claim),
        ("sub", json!(""), JwtError::Subject(InvalidName::Empty)),
        ("sub", json!("a\nb"), JwtError::Subject(InvalidName::Characters)),
    ] {
        let token = keys.token(Algorithm::Es256, &with(name, value.clone()));
        assert_eq!(refusal(&issuer(), &keys, &token), error, "{name}: {value}");
    }
    for (name, value) in [
        ("aud", json!(["a", "other"])),
        ("exp", seconds(-59)),
        ("exp", json!(1_800_000_000.5)),
        ("nbf", seconds(60)),
        ("nbf", Value::Null),
        ("iat", Value::Null),
        ("realm_access", json!("none")),
    ] {
        let token = keys.token(Algorithm::Es256, &with(name, value.clone()));
        assert!(issuer().authenticate(&token, &keys.set(), now()).is_ok(), "{name}: {value}");
    }
}

#[test]
fn a_required_claim_must_have_its_value() {
    let keys = Keys::new();
    let mut issuer = issuer();
    issuer.required_claims = BTreeMap::from([(ClaimPath::new("hd").unwrap(), json!("example.org"))]);
    for value in [json!("example.org"), json!(["a", "example.org"])] {
        let token = keys.token(Algorithm::Es256, &with("hd", value));
        assert!(issuer.authenticate(&token, &keys.set(), now()).is_ok());
    }
    for value in [Value::Null, json!("example.org.evil"), json!(true), json!({"example.org": 1})] {
        let token = keys.token(Algorithm::Es256, &with("hd", value));
        assert_eq!(refusal(&issuer, &keys, &token), JwtError::Claim);
    }
}

#[test]
fn an_email_address_that_is_not_verified_is_no_subject() {
    let keys = Keys::new();
    let mut issuer = issuer();
    issuer.subject_claim = ClaimPath::new("email").unwrap();
    let mut claims = with("email", json!("alice@example.org"));
    assert!(issuer.authenticate(&keys.token(Algorithm::Es256, &claims), &keys.set(), now()).is_ok());
    for value in [json!(false), json!("true")] {
        claims["email_verified"] = value;
        assert_eq!(refusal(&issuer, &keys, &keys.token(Algorithm::Es256, &claims)), JwtError::Email);
    }
    claims["email_verified"] = json!(true);
    assert!(issuer.authenticate(&keys.token(Algorithm::Es256, &claims), &keys.set(), now()).is_ok());
}

#[test]
fn an_algorithm_outside_the_list_is_refused() {
    let keys = Keys::new();
    let mut issuer = issuer();
    issuer.algorithms = vec![Algorithm::Rs256];
    for algorithm in Algorithm::ALL {
        let token = keys.token(algorithm, &claims());
        let allowed = algorithm == Algorithm::Rs256;
        assert_eq!(issuer.authenticate(&token, &keys.set(), now()).is_ok(), allowed, "{algorithm}");
    }
}

#[test]
fn a_token_without_a_signature_is_refused() {
    let keys = Keys::new();
    for algorithm in ["none", "None", "nOnE", ""] {
        let token = format!("{}.{}.", encoded(&json!({"alg": algorithm})), encoded(&claims()));
        assert_eq!(refusal(&issuer(), &keys, &token), JwtError::Algorithm, "{algorithm}");
    }
    for algorithm in ["RS256", "ES256", "EdDSA"] {
        let token = format!("{}.{}.", encoded(&json!({"alg": algorithm})), encoded(&claims()));
        assert_eq!(refusal(&issuer(), &keys, &token), JwtError::Signature, "{algorithm}");
    }
}

#[test]
fn a_public_key_is_no_shared_secret() {
    let keys = Keys::new();
    for secret in [keys.rsa_modulus(), keys.set_text().into_bytes()] {
        let message = format!("{}.{}", encoded(&json!({"alg": "HS256", "kid": "RSA"})), encoded(&claims()));
        let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), message.as_bytes());
        let token = format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(code));
        assert_eq!(refusal(&issuer(), &keys, &token), JwtError::Algorithm);
    }
}

#[test]
fn the_key_is_the_one_that_the_header_names() {
    let keys = Keys::new();
    let sign = |header: Value, algorithm| keys.token_with_header(algorithm, &header, &claims());
    let unknown = sign(json!({"alg": "ES256", "kid": "new"}), Algorithm::Es256);
    assert_eq!(refusal(&issuer(), &keys, &unknown), JwtError::UnknownKey);
    let swapped = sign(json!({"alg": "ES256", "kid": "RSA"}), Algorithm::Es256);
    assert_eq!(refusal(&issuer(), &keys, &swapped), JwtError::Algorithm, "a key of another type");
    let other = Keys::new().token(Algorithm::Es256, &claims());
    assert_eq!(refusal(&issuer(), &keys, &other), JwtError::Signature, "another issuer's key of the same name");
    let unnamed = sign(json!({"alg": "ES256"}), Algorithm::Es256);
    assert!(issuer().authenticate(&unnamed, &keys.set(), now()).is_ok());
    for kid in [json!(7), json!(null), json!(["EC"])] {
        let token = sign(json!({"alg": "ES256", "kid": kid}), Algorithm::Es256);
        assert_eq!(refusal(&issuer(), &keys, &token), JwtError::Malformed);
    }
}

#[test]
fn keys_and_extensions_in_the_header_are_not_used() {
    let (keys, attacker) = (Keys::new(), Keys::new());
    for header in [
        json!({"alg": "ES256", "jwk": attacker.jwk("EC")}),
        json!({"alg": "ES256", "jku": "https://evil.example.org/jwks"}),
        json!({"alg": "ES256", "x5u": "https://evil.example.org/cert", "x5c": ["MIIB"]}),
    ] {
        let token = attacker.token_with_header(Algorithm::Es256, &header, &claims());
        assert_eq!(refusal(&issuer(), &keys, &token), JwtError::Signature, "{header}");
    }
    for header in [json!({"alg": "ES256", "crit": ["exp"]}), json!({"alg": "ES256", "b64": false})] {
        let token = keys.token_with_header(Algorithm::Es256, &header, &claims());
        assert_eq!(refusal(&issuer(), &keys, &token), JwtError::Critical, "{header}");
    }
}

#[test]
fn a_token_of_another_kind_is_refused() {
    let keys = Keys::new();
    let sign = |kind: &str| keys.token_with_header(Algorithm::Es256, &json!({"alg": "ES256", "typ": kind}), &claims());
    for kind in ["JWT", "jwt", "at+jwt", "application/at+jwt"] {
        assert!(issuer().authenticate(&sign(kind), &keys.set(), now()).is_ok(), "{kind}");
    }
    for kind in ["logout+jwt", "dpop+jwt", "secevent+jwt", "", "JWE"] {
        assert_eq!(refusal(&issuer(), &keys, &sign(kind)), JwtError::Type, "{kind}");
    }
}

#[test]
fn a_changed_token_is_refused() {
    let keys = Keys::new();
    let token = keys.token(Algorithm::Es256, &claims());
    let (message, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let forged = format!("{header}.{}.{signature}", encoded(&with("sub", json!("admin"))));
    assert_eq!(refusal(&issuer(), &keys, &forged), JwtError::Signature);
    for text in [
        "",
        ".",
        "..",
        "...",
        message,
        &format!("{token}."),
        &format!(".{token}"),
        &format!("{token}="),
        &format!(" {token}"),
        &format!("{token}\n"),
        &token.replacen('.', "..", 1),
        &format!("e30.{signature}"),
    ] {
        assert_eq!(refusal(&issuer(), &keys, text), JwtError::Malformed, "{text:?}");
    }
    let huge = keys.token(Algorithm::Es256, &with("x", json!("x".repeat(16 * 1024))));
    assert_eq!(refusal(&issuer(), &keys, &huge), JwtError::TooLarge);
}

#[test]
fn a_member_that_occurs_twice_is_refused() {
    let keys = Keys::new();
    let encode = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let claims = claims().to_string();
    let twice = claims.replacen('{', r#"{"sub":"admin","#, 1);
    let token = keys.sign(Algorithm::Es256, &format!("{}.{}", encode(r#"{"alg":"ES256"}"#), encode(&twice)));
    assert_eq!(refusal(&issuer(), &keys, &token), JwtError::Malformed);
    let header = encode(r#"{"alg":"none","alg":"ES256"}"#);
    let token = keys.sign(Algorithm::Es256, &format!("{header}.{}", encode(&claims)));
    assert_eq!(refusal(&issuer(), &keys, &token), JwtError::Malformed);
}

#[test]
fn errors_repeat_nothing_of_the_token() {
    let keys = Keys::new();
    let header = json!({"alg": "ES256", "kid": "SECRET-KID"});
    let token = keys.token_with_header(Algorithm::Es256, &header, &claims());
    assert!(!refusal(&issuer(), &keys, &token).to_string().contains("SECRET"));
}

#[test]
fn keys_that_verify_no_signatures_are_left_out() {
    let keys = Keys::new();
    let parse = |keys: Value| KeySet::parse(json!({"keys": keys}).to_string().as_bytes());
    let changed = |name: &str, value: Value| {
        let mut key = keys.jwk("RSA");
        key[name] = value;
        key
    };
    let modulus = BASE64_URL_SAFE_NO_PAD.encode(&keys.rsa_modulus()[1..]);
    for key in [
        changed("use", json!("enc")),
        changed("use", json!(7)),
        changed("key_ops", json!(["encrypt"])),
        changed("alg", json!("RSA-OAEP")),
        changed("alg", json!("HS256")),
        changed("kty", json!("oct")),
        changed("n", json!(modulus)),
        changed("n", json!("AQAB")),
        changed("n", json!("")),
        changed("n", json!("AAAA")),
        changed("n", json!("!")),
        json!({"kty": "oct", "k": "AAAA", "kid": "RSA"}),
        json!({"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA"}),
        json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}),
        json!({"kty": "OKP", "crv": "X25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}),
        json!("RSA"),
    ] {
        assert_eq!(parse(json!([key])).unwrap_err(), KeySetError::Empty, "{key}");
    }
    let set = parse(json!([changed("use", json!("enc")), keys.jwk("EC")])).unwrap();
    assert_eq!(format!("{set:?}"), r#"["EC"]"#);
    assert_eq!(parse(json!(vec![keys.jwk("EC"); MANY])).unwrap_err(), KeySetError::TooMany(MANY));
    for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[],"keys":[]}"#] {
        assert_eq!(KeySet::parse(text.as_bytes()).unwrap_err(), KeySetError::Malformed, "{text}");
    }
    assert_eq!(KeySet::parse(&vec![b' '; 300 * 1024]).unwrap_err(), KeySetError::TooLarge);
}

/// More keys than a set may have.
const MANY: usize = 101;

#[test]
fn a_key_for_one_algorithm_verifies_no_other() {
    let keys = Keys::new();
    let mut key = keys.jwk("RSA");
    key["alg"] = json!("RS256");
    let set = KeySet::parse(json!({"keys": [key]}).to_string().as_bytes()).unwrap();
    assert!(issuer().authenticate(&keys.token(Algorithm::Rs256, &claims()), &set, now()).is_ok());
    let error = issuer().authenticate(&keys.token(Algorithm::Ps256, &claims()), &set, now()).unwrap_err();
    assert_eq!(error, JwtError::Algorithm);
}

fn shared(algorithm: hmac::Algorithm, name: &str, secret: &[u8], claims: &Value) -> String {
    let message = format!("{}.{}", encoded(&json!({"alg": name})), encoded(claims));
    let code = hmac::sign(&hmac::Key::new(algorithm, secret), message.as_bytes());
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(code))
}

#[test]
fn a_token_for_sparks_filter_is_verified_with_the_shared_secret() {
    let bytes = [7; 64];
    let secret = SharedSecret::parse(&format!("{}==\n", BASE64_URL_SAFE_NO_PAD.encode(bytes))).unwrap();
    for (algorithm, name) in [(hmac::HMAC_SHA256, "HS256"), (hmac::HMAC_SHA384, "HS384"), (hmac::HMAC_SHA512, "HS512")]
    {
        let token = shared(algorithm, name, &bytes, &json!({"sub": "etl"}));
        let principal = secret.authenticate(&token, false, now()).unwrap();
        assert_eq!((principal.subject(), principal.expires()), ("spark:etl", None));
        let wrong = shared(algorithm, name, &[8; 64], &json!({"sub": "etl"}));
        assert_eq!(secret.authenticate(&wrong, false, now()), Err(JwtError::Signature));
    }
    let check = |claims: Value, require| {
        let token = shared(hmac::HMAC_SHA256, "HS256", &bytes, &claims);
        secret.authenticate(&token, require, now()).map(|principal| principal.subject().to_owned())
    };
    assert_eq!(check(json!({}), false), Ok("spark:jws".to_owned()));
    assert_eq!(check(json!({}), true), Err(JwtError::NoExpiry));
    assert_eq!(check(json!({"exp": now().timestamp()}), false), Err(JwtError::Expired));
    assert_eq!(check(json!({"exp": now().timestamp() + 1}), true), Ok("spark:jws".to_owned()));
    assert_eq!(check(json!({"nbf": now().timestamp() + 1}), false), Err(JwtError::NotYetValid));
    assert_eq!(check(json!({"sub": ["etl"]}), false), Err(JwtError::Malformed));
    for name in ["none", "RS256", "HS1"] {
        let token = shared(hmac::HMAC_SHA256, name, &bytes, &json!({}));
        assert_eq!(secret.authenticate(&token, false, now()), Err(JwtError::Algorithm), "{name}");
    }
    assert!(!format!("{secret:?}").contains('7'));
}

#[test]
fn a_weak_shared_secret_is_refused() {
    let parse = |bytes: usize| SharedSecret::parse(&BASE64_URL_SAFE_NO_PAD.encode(vec![7; bytes])).map(|_| ());
    assert_eq!(parse(31), Err(SharedSecretError::Weak(248)));
    assert_eq!(parse(0), Err(SharedSecretError::Weak(0)));
    assert_eq!(parse(32), Ok(()));
    assert_eq!(SharedSecret::parse("a b").map(|_| ()), Err(SharedSecretError::Malformed));
    let short = SharedSecret::parse(&BASE64_URL_SAFE_NO_PAD.encode([7; 32])).unwrap();
    let token = shared(hmac::HMAC_SHA512, "HS512", &[7; 32], &json!({}));
    assert_eq!(short.authenticate(&token, false, now()), Err(JwtError::Algorithm), "too short for HS512");
}

proptest! {
    #[test]
    fn no_text_makes_a_check_panic(
        text in ".{0,80}",
        parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..4),
        jwks in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let keys = Keys::fixed();
        let encoded = parts.iter().map(|part| BASE64_URL_SAFE_NO_PAD.encode(part)).collect::<Vec<_>>().join(".");
        let secret = SharedSecret::parse(&"A".repeat(86)).unwrap();
        for token in [&text, &encoded] {
            prop_assert!(issuer().authenticate(token, &keys, now()).is_err());
            prop_assert!(secret.authenticate(token, false, now()).is_err());
            let _ = unverified_issuer(token);
        }
        let _ = SharedSecret::parse(&text);
        prop_assert!(KeySet::parse(&jwks).is_err());
    }

    #[test]
    fn no_claims_make_a_check_panic(exp in any::<f64>(), nbf in any::<i64>(), iat in any::<u64>()) {
        let claims = json!({"exp": exp, "nbf": nbf, "iat": iat});
        let _ = super::claims::check_times(claims.as_object().unwrap(), Duration::from_secs(600), now());
    }
}
