//! Tokens of OIDC issuers. Their keys are fetched when a token needs them, and kept: while an issuer is away, tokens that were
//! signed with known keys stay valid. A token that was verified is remembered as long as its keys are, so that not each request
//! verifies a signature.

use std::{
    slice,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use chrono::Utc;
use tokio::time::Instant;

use super::{
    Unauthenticated,
    cache::{Cache, Digest, digest},
    issuer_client::{Endpoints, fetch},
};
use sparkgate_access::{
    OidcIssuer, Principal,
    jwt::{JwtError, KeySet, unverified_issuer},
};
use sparkgate_common::detached::detached;

/// How old keys may become before they are fetched again, so that a withdrawn key is noticed.
const FRESH: Duration = Duration::from_secs(3600);
/// The shortest time between two fetches of one issuer's keys: tokens with invented keys cause no load there. A token that is signed
/// with a new key is refused for this long after the last fetch.
const PAUSE: Duration = Duration::from_secs(10);
/// The same after a fetch that failed.
const RETRY: Duration = Duration::from_secs(3);
/// How long a verified token is remembered.
const VERIFIED: Duration = Duration::from_secs(300);

/// The issuers that have been asked, by their settings.
#[derive(Default)]
pub(super) struct Issuers(Mutex<Vec<(OidcIssuer, Arc<Issuer>)>>);

/// What is known of one issuer.
#[derive(Default)]
struct Issuer {
    keys: RwLock<Option<Arc<Keys>>>,
    /// The last fetch. Held while one is in progress.
    fetched: tokio::sync::Mutex<Option<Fetch>>,
}

/// The keys of one issuer, and the tokens that they verified.
struct Keys {
    set: Arc<KeySet>,
    /// Where browsers sign in, fetched with the keys.
    endpoints: Option<Arc<Endpoints>>,
    since: Instant,
    verified: Cache,
}

impl Keys {
    fn new(set: Arc<KeySet>, endpoints: Option<Arc<Endpoints>>, since: Instant) -> Arc<Self> {
        Arc::new(Self { set, endpoints, since, verified: Cache::default() })
    }

    fn are_fresh(&self) -> bool {
        self.since.elapsed() < FRESH
    }

    fn verify(&self, issuer: &OidcIssuer, token: &str, digest: Digest) -> Result<Arc<Principal>, JwtError> {
        let principal = Arc::new(issuer.authenticate(token, &self.set, Utc::now())?);
        self.verified.put(digest, principal.clone(), VERIFIED);
        Ok(principal)
    }
}

/// A fetch of an issuer's keys.
#[derive(Clone, Copy)]
struct Fetch {
    began: Instant,
    succeeded: bool,
}

impl Fetch {
    /// Returns whether its result still counts for a request that began to wait at `asked`.
    fn counts(self, asked: Instant) -> bool {
        let pause = if self.succeeded { PAUSE } else { RETRY };
        self.began > asked || self.began.elapsed() < pause
    }
}

impl Issuers {
    /// Returns the principal of a token; `None` if it is of none of these issuers.
    pub(super) async fn principal(
        &self,
        token: &str,
        issuers: &[OidcIssuer],
    ) -> Option<Result<Arc<Principal>, Unauthenticated>> {
        let digest = digest(token);
        if let Some(principal) = issuers.iter().find_map(|issuer| self.known(issuer).verified(&digest)) {
            return Some(Ok(principal));
        }
        let named = unverified_issuer(token).ok()?;
        let issuer = issuers.iter().find(|issuer| issuer.issuer == named)?;
        Some(self.known(issuer).principal(issuer, token, digest).await)
    }

    /// Returns the principal of a token that has to be of this issuer.
    pub(super) async fn verify_token(
        &self,
        token: &str,
        issuer: &OidcIssuer,
    ) -> Result<Arc<Principal>, Unauthenticated> {
        let other =
            || Unauthenticated::Invalid("the token is of another issuer, or none that can be verified".to_owned());
        self.principal(token, slice::from_ref(issuer)).await.unwrap_or_else(|| Err(other()))
    }

    /// Returns the endpoints of an issuer; `None` if they can't be fetched, or if it has none.
    pub(super) async fn endpoints(&self, issuer: &OidcIssuer) -> Option<Arc<Endpoints>> {
        self.known(issuer).current(issuer).await?.endpoints.clone()
    }

    /// Verifies the ID token of a sign-in with an issuer's client.
    pub(super) async fn verify_id_token(
        &self,
        issuer: &OidcIssuer,
        token: &str,
        client_id: &str,
        nonce: &str,
    ) -> Result<(), Unauthenticated> {
        let verify = |keys: &Keys| issuer.verify_id_token(token, &keys.set, client_id, nonce, Utc::now());
        self.known(issuer).verified_by(issuer, verify).await
    }

    fn known(&self, issuer: &OidcIssuer) -> Arc<Issuer> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|(settings, _)| settings == issuer) {
            return found.clone();
        }
        // New settings: each token is verified again, with the same keys if they would be fetched from the same place.
        let place =
            |of: &OidcIssuer| (of.issuer.clone(), of.jwks_uri.clone(), of.ca_file.clone(), of.console.is_some());
        let keys = known.iter().filter(|(settings, _)| place(settings) == place(issuer)).find_map(|(_, it)| it.keys());
        let keys = keys.map(|keys| Keys::new(keys.set.clone(), keys.endpoints.clone(), keys.since));
        let new = Arc::new(Issuer { keys: RwLock::new(keys), ..Issuer::default() });
        known.retain(|(settings, _)| settings.issuer != issuer.issuer);
        known.push((issuer.clone(), new.clone()));
        new
    }
}

impl Issuer {
    /// Returns the principal of a token that the present keys have verified.
    fn verified(&self, digest: &Digest) -> Option<Arc<Principal>> {
        let keys = self.keys().filter(|keys| keys.are_fresh())?;
        keys.verified.get(digest, VERIFIED).filter(|principal| !principal.is_expired(Utc::now()))
    }

    async fn principal(
        self: &Arc<Self>,
        issuer: &OidcIssuer,
        token: &str,
        digest: Digest,
    ) -> Result<Arc<Principal>, Unauthenticated> {
        self.verified_by(issuer, |keys| keys.verify(issuer, token, digest)).await
    }

    /// Verifies a token with the keys, and with newer ones if they don't have its key.
    async fn verified_by<T>(
        self: &Arc<Self>,
        issuer: &OidcIssuer,
        verify: impl Fn(&Keys) -> Result<T, JwtError>,
    ) -> Result<T, Unauthenticated> {
        let away =
            || Unauthenticated::Unavailable(format!("the keys of the issuer {} can't be fetched", issuer.issuer));
        let keys = self.current(issuer).await.ok_or_else(away)?;
        let verified = match verify(&keys) {
            Err(JwtError::UnknownKey) => verify(&*self.fetch(issuer).await.ok_or_else(away)?),
            verified => verified,
        };
        verified.map_err(|error| Unauthenticated::Invalid(error.to_string()))
    }

    /// Returns the keys, which are fetched if they are too old.
    async fn current(self: &Arc<Self>, issuer: &OidcIssuer) -> Option<Arc<Keys>> {
        match self.keys() {
            Some(keys) if keys.are_fresh() => Some(keys),
            // Another request fetches them at this moment: an issuer that doesn't answer must not delay all requests.
            Some(keys) if self.fetched.try_lock().is_err() => Some(keys),
            // Keys that are too old are better than none.
            known => self.fetch(issuer).await.or(known),
        }
    }

    fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches the keys, unless that was done a moment ago. One request of many fetches. Returns `None` if the last fetch failed.
    async fn fetch(self: &Arc<Self>, issuer: &OidcIssuer) -> Option<Arc<Keys>> {
        let (this, settings) = (self.clone(), issuer.clone());
        // A client that disconnects must not end the fetch for all others.
        detached(async move { this.fetch_unless_recent(&settings).await }).await
    }

    async fn fetch_unless_recent(&self, issuer: &OidcIssuer) -> Option<Arc<Keys>> {
        let asked = Instant::now();
        let mut last = self.fetched.lock().await;
        if let Some(fetch) = last.filter(|fetch| fetch.counts(asked)) {
            return self.keys().filter(|_| fetch.succeeded);
        }
        // Until it has succeeded.
        *last = Some(Fetch { began: Instant::now(), succeeded: false });
        match fetch(issuer).await {
            Ok((keys, endpoints)) => {
                tracing::info!(issuer = issuer.issuer, ?keys, "keys of the issuer fetched");
                let keys = Keys::new(Arc::new(keys), endpoints.map(Arc::new), Instant::now());
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(keys.clone());
                if let Some(fetch) = last.as_mut() {
                    fetch.succeeded = true;
                }
                Some(keys)
            }
            Err(error) => {
                tracing::warn!(issuer = issuer.issuer, "the keys of the issuer can't be fetched: {error:#}");
                None
            }
        }
    }
}
