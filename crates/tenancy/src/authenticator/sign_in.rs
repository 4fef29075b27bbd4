//! Sign-in of browsers with an OIDC issuer: the authorization code flow with PKCE (RFC 6749, RFC 7636, `OpenID` Connect Core 1.0).
//!
//! Until the issuer answers, nothing is stored: the browser keeps one secret in a cookie, and `state`, `nonce` and the verifier are
//! derived from it, so that an answer counts only in the browser that asked, and once.

use std::net::IpAddr;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::Utc;
use form_urlencoded::Serializer;
use ring::error::Unspecified;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    Authenticator, Unauthenticated,
    browser_sessions::{Secret, Tokens, chain, client_of, unavailable},
    checks::Gate,
    issuer_client::{NoTokens, tokens},
};
use crate::tenancy::Tenancy;
use sparkgate_access::{ApiKey, Authentication, ConsoleClient, OidcIssuer, Provider, SESSION_IDLE, SESSION_LIFETIME};
use sparkgate_store::{Actor, AuditNote, NewBrowserSession};

/// The path of the answer below the gateway's URL in browsers.
const CALLBACK: &str = "/console/sign-in/callback";
/// Where the issuer sends a browser after a sign-out.
const SIGNED_OUT: &str = "/console/signed-out";

/// A sign-in that has begun.
#[derive(Debug)]
pub struct SignIn {
    /// The issuer's page.
    pub url: String,
    /// The cookie that the browser keeps until the answer.
    pub cookie: String,
}

/// The issuer's answer, as the browser brings it.
#[derive(Debug, Default)]
pub struct SignInAnswer<'a> {
    /// The cookie of [`SignIn`].
    pub cookie: Option<&'a str>,
    pub code: Option<&'a str>,
    pub state: Option<&'a str>,
    pub issuer: Option<&'a str>,
    pub error: Option<&'a str>,
    /// The cookie of the browser's present session, which the new one replaces.
    pub session: Option<&'a str>,
}

/// A sign-in that has ended well.
#[derive(Debug)]
pub struct SignedIn {
    /// The cookie of the new session.
    pub cookie: String,
    /// The page that the user wanted.
    pub to: String,
}

/// The ways in which browsers sign in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignInWays {
    /// The names of the issuers.
    pub issuers: Vec<String>,
    /// Whether there is a form for an API key: only where there is no issuer for browsers.
    pub has_key: bool,
}

impl SignInWays {
    /// Returns whether there is none.
    pub fn are_none(&self) -> bool {
        self.issuers.is_empty() && !self.has_key
    }
}

/// Where a request of a browser comes from, for the audit.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    pub address: Option<IpAddr>,
    pub request_id: &'a str,
}

/// Why a browser isn't signed in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    #[error("this gateway has no such issuer for browsers")]
    NoIssuer,
    /// The answer is of another browser, was used already, or is too late.
    #[error("the answer belongs to no sign-in that this browser has begun, or came too late: begin again")]
    Foreign,
    /// The issuer says no.
    #[error("{0}")]
    Refused(String),
    /// The issuer's tokens aren't accepted.
    #[error("the issuer's tokens are not accepted: {0}")]
    Unusable(String),
    #[error("{0}")]
    Unavailable(String),
}

/// A sign-in that waits for its answer: what its cookie says.
struct Attempt {
    secret: Secret,
    issuer: String,
    to: String,
}

impl Attempt {
    fn parse(cookie: &str) -> Option<Self> {
        let mut parts = cookie.split('.');
        let (secret, issuer, to) = (Secret::parse(parts.next()?)?, parts.next()?, parts.next()?);
        let to = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(to).ok()?).ok()?;
        parts.next().is_none().then(|| Self { secret, issuer: issuer.to_owned(), to })
    }

    fn cookie(&self) -> String {
        format!("{}.{}.{}", self.secret.text(), self.issuer, BASE64_URL_SAFE_NO_PAD.encode(&self.to))
    }

    fn derive(&self, purpose: &str) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.secret.derive(purpose))
    }

    /// Returns what the issuer gives back with its answer. It stands for the rest of the cookie, too.
    fn state(&self) -> String {
        self.derive(&format!("sparkgate/sign-in/state\n{}\n{}", self.issuer, self.to))
    }

    fn nonce(&self) -> String {
        self.derive("sparkgate/sign-in/nonce")
    }

    fn verifier(&self) -> String {
        self.derive("sparkgate/sign-in/verifier")
    }
}

/// Returns the issuers with which browsers sign in.
fn with_console(tenancy: &Tenancy) -> impl Iterator<Item = (&OidcIssuer, &ConsoleClient)> {
    let issuers = tenancy.access().authentication().map_or(&[][..], |providers| &providers.oidc);
    issuers.iter().filter_map(|issuer| Some((issuer, issuer.console.as_ref()?)))
}

impl Authenticator {
    /// Returns the ways in which browsers sign in.
    pub fn sign_in_ways(&self) -> SignInWays {
        let tenancy = self.access.current();
        let issuers: Vec<String> = with_console(&tenancy).map(|(issuer, _)| issuer.name.clone()).collect();
        let takes_keys = tenancy.access().authentication().is_some_and(|providers| providers.api_keys);
        SignInWays { has_key: issuers.is_empty() && takes_keys, issuers }
    }

    /// Begins a session with an API key, which it doesn't outlive, and returns its cookie. `earlier` is the cookie of the browser's present
    /// session, which the new one replaces.
    ///
    /// # Errors
    /// [`Unauthenticated`] if the key doesn't count, or if browsers sign in with an issuer.
    pub async fn sign_in_with_key(
        &self,
        key: &str,
        earlier: Option<&str>,
        from: Requester<'_>,
    ) -> Result<String, Unauthenticated> {
        let invalid = |text: &str| Unauthenticated::Invalid(text.to_owned());
        if !self.sign_in_ways().has_key {
            return Err(invalid("this gateway has no sign-in with an API key"));
        }
        if !ApiKey::is_one(key) {
            return Err(invalid("this is no API key of this gateway"));
        }
        let tenancy = self.access.current();
        let principal = self.api_keys.principal(key, Gate::new(&tenancy, from.address)).await?;
        let left = principal.expires().map(|end| (end - Utc::now()).to_std().unwrap_or_default());
        let no_random = |Unspecified| Unauthenticated::Unavailable("the gateway has no random numbers".to_owned());
        let secret = Secret::new().map_err(no_random)?;
        let new = NewBrowserSession {
            id: secret.id(),
            issuer: Provider::ApiKey.prefix().to_owned(),
            principal: principal.subject().to_owned(),
            sealed: secret.seal(&Tokens::for_key(key)).map_err(no_random)?,
            idle: SESSION_IDLE,
            lifetime: left.map_or(SESSION_LIFETIME, |left| left.min(SESSION_LIFETIME)),
        };
        let earlier = earlier.and_then(Secret::parse).map(|secret| secret.id());
        let actor = actor(principal.subject(), from);
        self.sessions.store.create_browser_session(&new, earlier.as_ref(), &actor).await.map_err(unavailable)?;
        Ok(secret.text())
    }

    /// Returns whether browsers that sign in reach the gateway by HTTPS; `None` if they can't sign in.
    pub fn is_https(&self) -> Option<bool> {
        with_console(&self.access.current()).next().map(|(_, console)| console.is_https())
    }

    /// Returns the gateway's URL in browsers, without a slash at its end; `None` if they can't sign in.
    pub fn external_url(&self) -> Option<String> {
        with_console(&self.access.current()).next().map(|(_, console)| console.external_url.clone())
    }

    /// Begins a sign-in, after which the browser opens the page `to`.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn begin_sign_in(&self, issuer: &str, to: &str) -> Result<SignIn, SignInError> {
        let tenancy = self.access.current();
        let found = with_console(&tenancy).find(|(known, _)| known.name == issuer);
        let (issuer, console) = found.ok_or(SignInError::NoIssuer)?;
        let endpoints = self.issuers.endpoints(issuer).await.ok_or_else(|| away(issuer))?;
        let secret = Secret::new().map_err(|Unspecified| no_random())?;
        let attempt = Attempt { secret, issuer: issuer.name.clone(), to: to.to_owned() };
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(attempt.verifier()));
        let url = with_query(
            &endpoints.authorization,
            &[
                ("response_type", "code"),
                ("client_id", &console.client_id),
                ("redirect_uri", &callback(console)),
                ("scope", &console.scopes.join(" ")),
                ("state", &attempt.state()),
                ("nonce", &attempt.nonce()),
                ("code_challenge", &challenge),
                ("code_challenge_method", "S256"),
            ],
        );
        Ok(SignIn { url, cookie: attempt.cookie() })
    }

    /// Ends a sign-in with the issuer's answer, and begins a session.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn complete_sign_in(
        &self,
        answer: &SignInAnswer<'_>,
        from: Requester<'_>,
    ) -> Result<SignedIn, SignInError> {
        let attempt = answer.cookie.and_then(Attempt::parse).ok_or(SignInError::Foreign)?;
        let state = answer.state.unwrap_or_default();
        if !bool::from(attempt.state().as_bytes().ct_eq(state.as_bytes())) {
            return Err(SignInError::Foreign);
        }
        let tenancy = self.access.current();
        let found = with_console(&tenancy).find(|(known, _)| known.name == attempt.issuer);
        let (issuer, console) = found.ok_or(SignInError::NoIssuer)?;
        let endpoints = self.issuers.endpoints(issuer).await.ok_or_else(|| away(issuer))?;
        // The answer of another issuer would send its code, or ours, to the wrong one (RFC 9207).
        if answer.issuer.map_or(endpoints.names_issuer, |named| named != issuer.issuer) {
            return Err(SignInError::Foreign);
        }
        if let Some(error) = answer.error {
            return Err(SignInError::Refused(refusal(error)));
        }
        let code = answer.code.ok_or(SignInError::Foreign)?;
        let (verifier, redirect) = (attempt.verifier(), callback(console));
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect),
            ("code_verifier", &verifier),
        ];
        let granted = tokens(issuer, console, &endpoints, &grant).await.map_err(|error| {
            tracing::warn!(issuer = issuer.issuer, "the issuer gave no tokens for a sign-in: {}", chain(&error));
            match error {
                NoTokens::Refused(code) if code == "invalid_grant" => SignInError::Foreign,
                NoTokens::Refused(code) => {
                    SignInError::Refused(format!("the issuer gives this gateway no tokens: `{code}`"))
                }
                NoTokens::Away(_) => away(issuer),
            }
        })?;
        let id_token = granted.id_token.as_deref();
        let id_token = id_token.ok_or_else(|| SignInError::Unusable("it sent no ID token".to_owned()))?;
        self.issuers
            .verify_id_token(issuer, id_token, &console.client_id, &attempt.nonce())
            .await
            .map_err(token_error)?;
        let (tokens, principal) = Tokens::accepted(&self.issuers, issuer, granted).await.map_err(token_error)?;
        let secret = Secret::new().map_err(|Unspecified| no_random())?;
        let new = NewBrowserSession {
            id: secret.id(),
            issuer: issuer.name.clone(),
            principal: principal.subject().to_owned(),
            sealed: secret.seal(&tokens).map_err(|Unspecified| no_random())?,
            idle: console.idle,
            lifetime: console.lifetime,
        };
        let earlier = answer.session.and_then(Secret::parse).map(|secret| secret.id());
        let actor = actor(principal.subject(), from);
        let stored = self.sessions.store.create_browser_session(&new, earlier.as_ref(), &actor).await;
        stored.map_err(|error| token_error(unavailable(error)))?;
        Ok(SignedIn { cookie: secret.text(), to: attempt.to })
    }

    /// Ends the session of a cookie. Returns the issuer's page on which the browser ends its session with the issuer, if there is
    /// one.
    ///
    /// # Errors
    /// The session isn't ended because the database doesn't answer.
    pub async fn sign_out(&self, cookie: &str, from: Requester<'_>) -> Result<Option<String>, SignInError> {
        let Some(secret) = Secret::parse(cookie) else { return Ok(None) };
        let failed = |error| token_error(unavailable(error));
        let id = secret.id();
        let Some(session) = self.sessions.store.browser_session(&id, false).await.map_err(failed)? else {
            return Ok(None);
        };
        let actor = actor(&session.principal, from);
        self.sessions.store.end_browser_session(&id, Some(&actor)).await.map_err(failed)?;
        let tenancy = self.access.current();
        let issuer =
            tenancy.access().authentication().and_then(|providers: &Authentication| client_of(providers, &session));
        let Some((issuer, console)) = issuer.and_then(|issuer| Some((issuer, issuer.console.as_ref()?))) else {
            return Ok(None);
        };
        let endpoints = self.issuers.endpoints(issuer).await;
        let Some(end) = endpoints.as_ref().and_then(|endpoints| endpoints.end_session.as_deref()) else {
            return Ok(None);
        };
        let back = format!("{}{SIGNED_OUT}", console.external_url);
        let id_token = secret.open(&session.sealed).and_then(|tokens| tokens.id_token);
        let mut query = vec![("client_id", console.client_id.as_str()), ("post_logout_redirect_uri", &back)];
        query.extend(id_token.as_deref().map(|token| ("id_token_hint", token)));
        Ok(Some(with_query(end, &query)))
    }
}

fn actor(principal: &str, from: Requester<'_>) -> Actor {
    Actor {
        principal: principal.to_owned(),
        address: from.address.map(|address| address.to_string()),
        request_id: from.request_id.to_owned(),
        note: AuditNote::default(),
    }
}

fn callback(console: &ConsoleClient) -> String {
    format!("{}{CALLBACK}", console.external_url)
}

/// Appends parameters to a URL that may have some.
fn with_query(url: &str, parameters: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("{url}{}{query}", if url.contains('?') { '&' } else { '?' })
}

/// Returns what an error of the issuer's answer means (RFC 6749, section 4.1.2.1). Its own words come with the address of the page,
/// which anybody can write, so they aren't shown.
fn refusal(error: &str) -> String {
    match error {
        "access_denied" => "the sign-in was cancelled, or the issuer denies access".to_owned(),
        "temporarily_unavailable" | "server_error" => "the issuer can't sign anyone in at the moment".to_owned(),
        "invalid_request" | "unauthorized_client" | "unsupported_response_type" | "invalid_scope" => {
            format!("the issuer refuses this gateway with `{error}`: an operator has to check its client")
        }
        _ => "the issuer refuses the sign-in".to_owned(),
    }
}

fn away(issuer: &OidcIssuer) -> SignInError {
    SignInError::Unavailable(format!("the issuer {} is not available, or has no sign-in for browsers", issuer.issuer))
}

fn no_random() -> SignInError {
    SignInError::Unavailable("the gateway has no random numbers".to_owned())
}

fn token_error(why: Unauthenticated) -> SignInError {
    match why {
        Unauthenticated::Unavailable(why) => SignInError::Unavailable(why),
        Unauthenticated::Limited(exceeded) => SignInError::Unavailable(exceeded.to_string()),
        Unauthenticated::Missing | Unauthenticated::UnknownSession | Unauthenticated::Invalid(_) => {
            SignInError::Unusable(why.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(to: &str) -> Attempt {
        Attempt { secret: Secret::new().unwrap(), issuer: "corp".to_owned(), to: to.to_owned() }
    }

    #[test]
    fn the_state_stands_for_the_whole_cookie() {
        let one = attempt("submissions?state=FAILED");
        let again = Attempt::parse(&one.cookie()).unwrap();
        assert_eq!((again.to.as_str(), again.issuer.as_str()), ("submissions?state=FAILED", "corp"));
        assert_eq!((again.state(), again.nonce(), again.verifier()), (one.state(), one.nonce(), one.verifier()));
        let [_, nonce, verifier] = [one.state(), one.nonce(), one.verifier()];
        assert!(nonce != verifier && nonce != one.state(), "one value doesn't tell the others");
        assert!((43..=128).contains(&verifier.len()), "RFC 7636, section 4.1");
        for changed in [
            Attempt {
                secret: Secret::parse(&one.secret.text()).unwrap(),
                issuer: "evil".to_owned(),
                to: one.to.clone(),
            },
            Attempt {
                secret: Secret::parse(&one.secret.text()).unwrap(),
                issuer: "corp".to_owned(),
                to: "overview".to_owned(),
            },
            attempt("submissions?state=FAILED"),
        ] {
            assert_ne!(changed.state(), one.state());
        }
        for cookie in ["", "a.b.c", &one.cookie()[1..], &format!("{}.x", one.cookie()), "..", "é.corp."] {
            assert!(Attempt::parse(cookie).is_none(), "{cookie}");
        }
    }

    #[test]
    fn parameters_are_appended_to_a_query() {
        assert_eq!(with_query("https://a/b", &[("x", "1&2")]), "https://a/b?x=1%262");
        assert_eq!(with_query("https://a/b?c=d", &[("x", "1")]), "https://a/b?c=d&x=1");
    }
}
