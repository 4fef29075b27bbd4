//! How callers are authenticated: the section `authentication` of the access file.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use serde_json::{Map, Value};

use crate::{jwt::Algorithm, principal::Principal};

/// How long the session of a browser lasts without a page that its user opens, unless its issuer sets another time.
pub const SESSION_IDLE: Duration = Duration::from_secs(2 * 3600);
/// How long it lasts at most, unless its issuer sets another time.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// The providers that a gateway accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct Authentication {
    pub oidc: Vec<OidcIssuer>,
    pub kubernetes: Option<Kubernetes>,
    /// Whether API keys are accepted.
    pub api_keys: bool,
    pub certificates: Option<Certificates>,
    pub proxy: Option<Proxy>,
    pub spark_jws: Option<SparkJws>,
    pub spark_listener: Option<SparkListener>,
}

/// An OIDC issuer whose tokens are accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct OidcIssuer {
    /// The prefix of subjects and groups.
    pub name: String,
    /// The issuer's URL, as in the claim `iss`.
    pub issuer: String,
    /// The audiences of which a token must have one.
    pub audiences: Vec<String>,
    pub algorithms: Vec<Algorithm>,
    pub subject_claim: ClaimPath,
    /// The claim with the groups. Without it, callers have none.
    pub groups_claim: Option<ClaimPath>,
    /// Claims that a token must have, with their values.
    pub required_claims: BTreeMap<ClaimPath, Value>,
    /// How far the issuer's clock may differ from the gateway's.
    pub leeway: Duration,
    /// The client that `sparkgate login` uses.
    pub client_id: Option<String>,
    /// The certificates that the issuer's server is verified with.
    pub ca_file: Option<PathBuf>,
    /// The address of the key set. Without it, discovery finds it.
    pub jwks_uri: Option<String>,
    /// The client with which browsers sign in to the console. Without it, they can't.
    pub console: Option<ConsoleClient>,
}

/// A client of an issuer for the authorization code flow, and what holds for the sessions that begin with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleClient {
    pub client_id: String,
    /// The file with the client's secret. A public client has none.
    pub client_secret_file: Option<PathBuf>,
    /// The gateway's URL in browsers, without a slash at its end.
    pub external_url: String,
    /// The scopes that are asked for, `openid` among them.
    pub scopes: Vec<String>,
    /// How long a session lasts without a page that its user opens.
    pub idle: Duration,
    /// How long a session lasts at most.
    pub lifetime: Duration,
}

impl ConsoleClient {
    /// Returns whether browsers reach the gateway by HTTPS. If not, they run on its own host.
    pub fn is_https(&self) -> bool {
        self.external_url.starts_with("https:")
    }
}

/// Kubernetes' `TokenReview`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// The audiences of which a token must have one.
    pub audiences: Vec<String>,
}

/// Client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The certificates of the authorities that sign client certificates.
    pub ca_file: PathBuf,
    pub subject: CertificateSubject,
}

/// The part of a client certificate that names the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateSubject {
    /// The common name; the organizations are groups, as in Kubernetes.
    #[default]
    CommonName,
    /// The URI of the subject alternative name, as in SPIFFE.
    Uri,
}

/// A trusted reverse proxy, which names the caller in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    pub user_header: String,
    /// The header with the groups, separated by commas.
    pub groups_header: Option<String>,
    /// The names of the client certificates that the proxy connects with. Without one of them, its headers are ignored.
    pub certificates: Vec<String>,
}

/// Tokens for Spark's `org.apache.spark.ui.JWSFilter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkJws {
    /// The file with the secret in base64url.
    pub secret_file: PathBuf,
    /// Whether tokens without an expiry are refused: `requireExpiration` of Spark 4.3.
    pub require_expiration: bool,
}

/// A port for clients of Spark's protocol that send no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkListener {
    pub listen: SocketAddr,
    /// The principal of all its callers.
    pub principal: Principal,
}

/// The place of a claim: a name, or names separated by dots for a claim within objects (`realm_access.roles`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimPath(String);

impl ClaimPath {
    /// Creates a path. `None` if one of its names is empty.
    pub fn new(path: &str) -> Option<Self> {
        let fine = path.len() <= 256 && !path.chars().any(char::is_control);
        (fine && path.split('.').all(|name| !name.is_empty())).then(|| Self(path.to_owned()))
    }

    /// Returns the path of the claim `sub`.
    pub(crate) fn sub() -> Self {
        Self("sub".to_owned())
    }

    /// Returns the claim at this place. A claim whose name is the whole path takes precedence: names may be URLs, which have
    /// dots.
    pub fn find<'a>(&self, claims: &'a Map<String, Value>) -> Option<&'a Value> {
        claims.get(&self.0).or_else(|| {
            let mut names = self.0.split('.');
            let first = claims.get(names.next()?)?;
            names.try_fold(first, |value, name| value.as_object()?.get(name))
        })
    }

    /// Returns the path as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_found_by_its_name_or_by_names_separated_by_dots() {
        let claims = json!({
            "sub": "alice",
            "realm_access": {"roles": ["a"], "deep": {"er": 1}},
            "https://example.org/groups": ["b"],
            "a.b": "whole",
            "a": {"b": "nested"},
        });
        let find = |path: &str| ClaimPath::new(path).unwrap().find(claims.as_object().unwrap()).cloned();
        assert_eq!(find("sub"), Some(json!("alice")));
        assert_eq!(find("realm_access.roles"), Some(json!(["a"])));
        assert_eq!(find("realm_access.deep.er"), Some(json!(1)));
        assert_eq!(find("https://example.org/groups"), Some(json!(["b"])));
        assert_eq!(find("a.b"), Some(json!("whole")));
        for path in ["alice", "sub.x", "realm_access.rolls", "realm_access.roles.0"] {
            assert_eq!(find(path), None, "{path}");
        }
        for path in ["", ".", "a.", ".a", "a..b", "a\n"] {
            assert_eq!(ClaimPath::new(path), None, "{path:?}");
        }
    }
}
