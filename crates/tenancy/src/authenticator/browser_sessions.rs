//! Sessions of browsers. The cookie is a secret of 256 bits; the database knows the session by a digest of it, and has the issuer's
//! tokens encrypted with another. Each request is authenticated with the session's token, as if it had been sent with it.
//!
//! Sessions are rows, and not encrypted cookies, so that a sign-out ends them on all replicas at once, and so that one replica at a
//! time renews the tokens: many issuers end a session whose refresh token is used twice.

use std::{sync::Arc, time::Duration};

use backon::Retryable;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    error::Unspecified,
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    Unauthenticated,
    api_keys::ApiKeys,
    cache::digest,
    checks::{Checks, Gate},
    issuer_client::{Granted, NoTokens, tokens},
    oidc::Issuers,
};
use sparkgate_access::{Authentication, OidcIssuer, Principal, Provider};
use sparkgate_common::{detached::detached, error::error_chain, pauses::a_few_tries};
use sparkgate_store::{self, BrowserSession, BrowserSessionId, Store};

/// How long a renewal is left to the replica that began it.
const CLAIM: Duration = Duration::from_secs(20);
/// How long a request waits for a renewal.
const PATIENCE: Duration = Duration::from_secs(12);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(100);

/// A random secret that a browser keeps in a cookie.
pub(super) struct Secret([u8; 32]);

impl Secret {
    pub(super) fn new() -> Result<Self, Unspecified> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self(BASE64_URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?))
    }

    pub(super) fn text(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns a value for a purpose. It tells nothing of the secret, nor of the values for other purposes.
    pub(super) fn derive(&self, purpose: &str) -> [u8; 32] {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), purpose.as_bytes());
        let mut value = [0; 32];
        value.copy_from_slice(tag.as_ref());
        value
    }

    pub(super) fn id(&self) -> BrowserSessionId {
        self.derive("sparkgate/browser-session/id")
    }

    fn key(&self) -> Result<LessSafeKey, Unspecified> {
        Ok(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.derive("sparkgate/browser-session/key"))?))
    }

    pub(super) fn seal(&self, tokens: &Tokens) -> Result<Vec<u8>, Unspecified> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce)?;
        let mut sealed = serde_json::to_vec(tokens).map_err(|_| Unspecified)?;
        self.key()?.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(self.id()), &mut sealed)?;
        Ok([&nonce[..], &sealed].concat())
    }

    pub(super) fn open(&self, sealed: &[u8]) -> Option<Tokens> {
        let (nonce, sealed) = sealed.split_first_chunk()?;
        let (nonce, mut sealed) = (Nonce::assume_unique_for_key(*nonce), sealed.to_vec());
        let text = self.key().ok()?.open_in_place(nonce, Aad::from(self.id()), &mut sealed).ok()?;
        serde_json::from_slice(text).ok()
    }
}

/// The issuer's tokens of a session, or its API key.
#[derive(Serialize, Deserialize)]
pub(super) struct Tokens {
    /// The one that authenticates the session's requests.
    pub(super) bearer: String,
    /// Until when the gateway accepts it.
    pub(super) ends: DateTime<Utc>,
    pub(super) id_token: Option<String>,
    refresh: Option<String>,
}

impl Tokens {
    /// Returns an API key, of which the database knows the end.
    pub(super) fn for_key(key: &str) -> Self {
        Self { bearer: key.to_owned(), ends: DateTime::<Utc>::MAX_UTC, id_token: None, refresh: None }
    }

    /// Returns the tokens of a session, and its principal: that of the access token. Where access tokens aren't for this gateway,
    /// the ID token may be.
    pub(super) async fn accepted(
        issuers: &Issuers,
        issuer: &OidcIssuer,
        granted: Granted,
    ) -> Result<(Self, Arc<Principal>), Unauthenticated> {
        let Granted { access_token, id_token, refresh_token } = granted;
        let (bearer, principal) = match (issuers.verify_token(&access_token, issuer).await, &id_token) {
            (Err(Unauthenticated::Invalid(why)), Some(id_token)) => {
                let other = issuers.verify_token(id_token, issuer).await;
                (id_token.clone(), other.map_err(|_| Unauthenticated::Invalid(why)))
            }
            (principal, _) => (access_token, principal),
        };
        let principal = principal?;
        let ends = principal.expires().unwrap_or_else(Utc::now);
        Ok((Self { bearer, ends, id_token, refresh: refresh_token }, principal))
    }
}

/// The sessions of the database.
#[derive(Clone)]
pub(super) struct BrowserSessions {
    pub(super) store: Store,
    checks: Arc<Checks>,
}

impl BrowserSessions {
    pub(super) fn new(store: Store) -> Self {
        Self { store, checks: Arc::default() }
    }

    /// Returns the principal of a cookie's session. `is_use` says whether the request is a page that its user opens. The session is
    /// read each time, so that a sign-out counts at once; a cookie that isn't known yet is checked as other credentials are.
    pub(super) async fn principal(
        &self,
        cookie: &str,
        is_use: bool,
        (issuers, keys): (&Arc<Issuers>, &ApiKeys),
        (providers, gate): (&Authentication, Gate<'_>),
    ) -> Result<(Arc<Principal>, BrowserSessionId), Unauthenticated> {
        let key = digest(cookie);
        let secret = Secret::parse(cookie).ok_or(Unauthenticated::UnknownSession)?;
        self.checks.not_refused(&key)?;
        let _turn = match self.checks.is_known(&key) {
            true => None,
            false => Some(self.checks.begin(key, gate).await?),
        };
        let answer = self.find_by_secret(&secret, is_use, (issuers, keys), providers).await;
        match &answer {
            Ok((principal, _)) => self.checks.accept(key, principal.clone()),
            Err(why @ Unauthenticated::UnknownSession) => self.checks.refuse(key, why.clone()),
            Err(_) => {}
        }
        answer
    }

    async fn find_by_secret(
        &self,
        secret: &Secret,
        is_use: bool,
        (issuers, keys): (&Arc<Issuers>, &ApiKeys),
        providers: &Authentication,
    ) -> Result<(Arc<Principal>, BrowserSessionId), Unauthenticated> {
        let (id, begun) = (secret.id(), Instant::now());
        loop {
            let found = self.store.browser_session(&id, is_use).await.map_err(unavailable)?;
            let Some(session) = found else {
                // A browser keeps the cookie of a session that has ended: that is no guess.
                let is_known = self.store.knows_browser_session(&id).await.map_err(unavailable)?;
                return Err(if is_known { Unauthenticated::Missing } else { Unauthenticated::UnknownSession });
            };
            let tokens = secret.open(&session.sealed).ok_or(Unauthenticated::Missing)?;
            if is_of_key(&session) {
                let principal = self.principal_of_key(&id, &tokens, keys, providers).await?;
                let is_the_same = principal.subject() == session.principal;
                return is_the_same.then_some((principal, id)).ok_or(Unauthenticated::Missing);
            }
            let issuer = client_of(providers, &session).ok_or(Unauthenticated::Missing)?;
            if Utc::now() < tokens.ends {
                let principal = match issuers.verify_token(&tokens.bearer, issuer).await {
                    // It ended between the two looks at the clock.
                    Err(Unauthenticated::Invalid(_)) if Utc::now() >= tokens.ends => continue,
                    principal => principal?,
                };
                let is_the_same = principal.subject() == session.principal;
                return is_the_same.then_some((principal, id)).ok_or(Unauthenticated::Missing);
            }
            if begun.elapsed() > PATIENCE {
                let why = format!("the issuer {} didn't renew the sign-in in time", issuer.issuer);
                return Err(Unauthenticated::Unavailable(why));
            }
            if self.store.claim_browser_session(&id, session.renewals, CLAIM).await.map_err(unavailable)? {
                let (this, issuers, issuer) = (self.clone(), issuers.clone(), issuer.clone());
                let secret = Secret(secret.0);
                // A client that disconnects must not lose the new tokens.
                detached(async move { this.renew(&secret, &session, tokens, &issuers, &issuer).await }).await?;
            } else {
                sleep(LOOK).await;
            }
        }
    }

    /// Returns the principal of a session's API key. The session ends with the key.
    async fn principal_of_key(
        &self,
        id: &BrowserSessionId,
        tokens: &Tokens,
        keys: &ApiKeys,
        providers: &Authentication,
    ) -> Result<Arc<Principal>, Unauthenticated> {
        if !providers.api_keys {
            return Err(Unauthenticated::Missing);
        }
        match keys.principal(&tokens.bearer, Gate::open()).await {
            Err(Unauthenticated::Invalid(_)) => {
                self.store.end_browser_session(id, None).await.map_err(unavailable)?;
                Err(Unauthenticated::Missing)
            }
            answer => answer,
        }
    }

    /// Renews the tokens of a session, or ends it if the issuer has ended it.
    async fn renew(
        &self,
        secret: &Secret,
        session: &BrowserSession,
        tokens: Tokens,
        issuers: &Issuers,
        issuer: &OidcIssuer,
    ) -> Result<(), Unauthenticated> {
        let (id, until) = (secret.id(), Instant::now() + CLAIM - LOOK);
        let (tokens, renewed) = match renewed(tokens, session, issuers, issuer).await {
            Ok(tokens) => (Some(tokens), Ok(())),
            Err(NotRenewed { why: Unauthenticated::Missing, .. }) => {
                tracing::info!(principal = session.principal, "session of a browser ended by its issuer");
                self.store.end_browser_session(&id, None).await.map_err(unavailable)?;
                return Err(Unauthenticated::Missing);
            }
            Err(NotRenewed { tokens, why }) => (tokens, Err(why)),
        };
        let sealed = tokens.map(|tokens| secret.seal(&tokens)).transpose();
        let sealed = sealed
            .map_err(|Unspecified| Unauthenticated::Unavailable("the gateway has no random numbers".to_owned()))?;
        let write = || self.store.renew_browser_session(&id, session.renewals, sealed.as_deref());
        let written = match sealed {
            // The issuer may no longer accept the previous refresh token: without this write the session would end. Once the claim is over,
            // another replica uses that token.
            Some(_) => timeout_at(until, write.retry(a_few_tries())).await,
            // A claim that isn't given back runs out.
            None => Ok(write().await),
        };
        let late = |_| Unauthenticated::Unavailable("the database doesn't store the renewed session".to_owned());
        written.map_err(late)?.map_err(unavailable)?;
        renewed
    }

    /// Returns whether a session still lasts. While the database doesn't answer, it does.
    pub(super) async fn lasts(&self, id: &BrowserSessionId) -> bool {
        self.store.browser_session(id, false).await.map_or(true, |session| session.is_some())
    }
}

/// Why a session has no new tokens.
struct NotRenewed {
    /// Its tokens with another refresh token, if the issuer has granted one.
    tokens: Option<Tokens>,
    why: Unauthenticated,
}

impl From<Unauthenticated> for NotRenewed {
    fn from(why: Unauthenticated) -> Self {
        Self { tokens: None, why }
    }
}

/// Returns new tokens for a session; [`Unauthenticated::Missing`] if it has ended.
async fn renewed(
    old: Tokens,
    session: &BrowserSession,
    issuers: &Issuers,
    issuer: &OidcIssuer,
) -> Result<Tokens, NotRenewed> {
    let (Some(console), Some(refresh)) = (&issuer.console, old.refresh) else {
        return Err(Unauthenticated::Missing.into());
    };
    let away = || Unauthenticated::Unavailable(format!("the issuer {} can't renew the sign-in", issuer.issuer));
    let endpoints = issuers.endpoints(issuer).await.ok_or_else(away)?;
    let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
    let granted = tokens(issuer, console, &endpoints, &grant).await.map_err(|error| match error {
        NoTokens::Refused(code) if code == "invalid_grant" => Unauthenticated::Missing,
        error => {
            tracing::warn!(issuer = issuer.issuer, "a sign-in can't be renewed: {}", chain(&error));
            away()
        }
    })?;
    // An issuer may leave out what stays as it is.
    let refresh = granted.refresh_token.clone().or(Some(refresh));
    let (mut tokens, principal) = match Tokens::accepted(issuers, issuer, granted).await {
        Ok(accepted) => accepted,
        // Its keys may not be known at the moment.
        Err(why) => {
            let tokens = Tokens { bearer: old.bearer, ends: old.ends, id_token: old.id_token, refresh };
            return Err(NotRenewed { tokens: Some(tokens), why });
        }
    };
    tokens.refresh = refresh;
    tokens.id_token = tokens.id_token.or(old.id_token);
    if principal.subject() == session.principal { Ok(tokens) } else { Err(Unauthenticated::Missing.into()) }
}

/// Returns whether a session began with an API key.
fn is_of_key(session: &BrowserSession) -> bool {
    session.issuer == Provider::ApiKey.prefix()
}

/// Returns the issuer of a session, if browsers still sign in with it.
pub(super) fn client_of<'a>(providers: &'a Authentication, session: &BrowserSession) -> Option<&'a OidcIssuer> {
    providers.oidc.iter().find(|issuer| issuer.name == session.issuer && issuer.console.is_some())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn unavailable(error: sparkgate_store::Error) -> Unauthenticated {
    tracing::warn!("the session of a browser can't be checked: {}", error_chain(&error));
    Unauthenticated::Unavailable("the database, which knows the sessions of browsers, is not available".to_owned())
}

/// Writes an error with its causes.
pub(super) fn chain(error: &NoTokens) -> String {
    match error {
        NoTokens::Refused(_) => error.to_string(),
        NoTokens::Away(error) => format!("{error:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_with_the_secret_of_their_own_session() {
        let (secret, other) = (Secret::new().unwrap(), Secret::new().unwrap());
        let tokens = Tokens { bearer: "hunter2".to_owned(), ends: Utc::now(), id_token: None, refresh: None };
        let sealed = secret.seal(&tokens).unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("hunter2"));
        let again = Secret::parse(&secret.text()).unwrap();
        assert_eq!((again.open(&sealed).unwrap().bearer, again.id()), ("hunter2".to_owned(), secret.id()));
        assert!(other.open(&sealed).is_none() && secret.open(&sealed[1..]).is_none() && secret.open(&[]).is_none());
        assert_ne!(secret.id(), secret.derive("sparkgate/browser-session/key"), "the id doesn't tell the key");
    }

    #[test]
    fn a_cookie_is_a_secret_of_256_bits() {
        for text in ["", "abc", "é", &"A".repeat(42), &"A".repeat(44), &format!("{}=", "A".repeat(43))] {
            assert!(Secret::parse(text).is_none(), "{text}");
        }
        assert!(Secret::parse(&"A".repeat(43)).is_some());
    }
}
