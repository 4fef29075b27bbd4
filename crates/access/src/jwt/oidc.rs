//! Tokens of an OIDC issuer.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{
    algorithm::Algorithm,
    claims::{check_audience, check_times},
    compact::Compact,
    error::JwtError,
    key_set::KeySet,
};
use crate::{
    authentication::OidcIssuer,
    principal::{InvalidName, Principal, Provider},
};

impl OidcIssuer {
    /// Verifies a token with the issuer's keys, and returns its principal. The claims are read only once the signature is
    /// verified.
    ///
    /// # Errors
    /// The token isn't one that this issuer signed for this gateway, or isn't valid now. [`JwtError::UnknownKey`] may mean that
    /// the issuer has changed its keys.
    pub fn authenticate(&self, token: &str, keys: &KeySet, now: DateTime<Utc>) -> Result<Principal, JwtError> {
        let claims = self.claims(token, keys)?;
        check_audience(&claims, &self.audiences)?;
        let expires = check_times(&claims, self.leeway, now)?.ok_or(JwtError::NoExpiry)?;
        self.check_required(&claims)?;
        self.principal(&claims).map(|principal| principal.with_expiry(Some(expires)))
    }

    /// Verifies the ID token that ends a sign-in with a client (`OpenID` Connect Core 1.0, section 3.1.3.7).
    ///
    /// # Errors
    /// The token isn't one that this issuer signed for this client and this sign-in, or isn't valid now.
    pub fn verify_id_token(
        &self,
        token: &str,
        keys: &KeySet,
        client_id: &str,
        nonce: &str,
        now: DateTime<Utc>,
    ) -> Result<(), JwtError> {
        let claims = self.claims(token, keys)?;
        check_audience(&claims, &[client_id.to_owned()])?;
        // A token for several audiences says which of them asked for it.
        let is_for_several = claims.get("aud").and_then(Value::as_array).is_some_and(|names| names.len() > 1);
        if (is_for_several || claims.contains_key("azp"))
            && claims.get("azp").and_then(Value::as_str) != Some(client_id)
        {
            return Err(JwtError::Audience);
        }
        check_times(&claims, self.leeway, now)?.ok_or(JwtError::NoExpiry)?;
        if claims.get("nonce").and_then(Value::as_str) == Some(nonce) { Ok(()) } else { Err(JwtError::Nonce) }
    }

    /// Returns the claims of a token of this issuer, once its signature is verified.
    fn claims(&self, token: &str, keys: &KeySet) -> Result<Map<String, Value>, JwtError> {
        let token = Compact::parse(token)?;
        check_kind(token.kind.as_deref())?;
        let algorithm: Algorithm = token.algorithm.parse().map_err(|_| JwtError::Algorithm)?;
        if !self.algorithms.contains(&algorithm) {
            return Err(JwtError::Algorithm);
        }
        keys.verify(&token, algorithm)?;
        let claims = token.claims()?;
        if claims.get("iss").and_then(Value::as_str) == Some(&self.issuer) { Ok(claims) } else { Err(JwtError::Issuer) }
    }

    fn check_required(&self, claims: &Map<String, Value>) -> Result<(), JwtError> {
        let holds = |value: &Value, required: &Value| match value {
            Value::Array(values) => values.contains(required),
            value => value == required,
        };
        let mut required = self.required_claims.iter();
        let fine = required.all(|(path, required)| path.find(claims).is_some_and(|value| holds(value, required)));
        if fine { Ok(()) } else { Err(JwtError::Claim) }
    }

    fn principal(&self, claims: &Map<String, Value>) -> Result<Principal, JwtError> {
        let subject = self.subject_claim.find(claims).and_then(Value::as_str).ok_or(JwtError::Claim)?;
        // As Kubernetes does: an address that isn't verified may be anybody's.
        if self.subject_claim.as_str() == "email"
            && claims.get("email_verified").is_some_and(|verified| *verified != true)
        {
            return Err(JwtError::Email);
        }
        let provider = Provider::Oidc(self.name.clone());
        let principal = Principal::new(provider, subject).map_err(|error: InvalidName| JwtError::Subject(error))?;
        let groups = self.groups_claim.as_ref().and_then(|path| path.find(claims));
        let groups = match groups {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(name)) => vec![name.as_str()],
            _ => Vec::new(),
        };
        let display = ["preferred_username", "email", "name"].into_iter().find_map(|name| claims.get(name)?.as_str());
        let principal = principal.with_groups(groups);
        Ok(match display {
            Some(name) => principal.with_display(name),
            None => principal,
        })
    }
}

/// Checks the header `typ`: a token for another purpose (`logout+jwt`, `dpop+jwt`) may have the same issuer and key (RFC 8725,
/// section 3.11). Most issuers send `JWT` or nothing; access tokens may be `at+jwt` (RFC 9068).
fn check_kind(kind: Option<&str>) -> Result<(), JwtError> {
    let Some(kind) = kind else { return Ok(()) };
    let kind = kind.to_ascii_lowercase();
    match kind.strip_prefix("application/").unwrap_or(&kind) {
        "jwt" | "at+jwt" => Ok(()),
        _ => Err(JwtError::Type),
    }
}
