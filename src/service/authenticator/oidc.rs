//! Tokens of OIDC issuers. Their keys are fetched when a token needs them, and kept: while an issuer is away, tokens that were
//! signed with known keys stay valid. A token that was verified is remembered as long as its keys are, so that not each request
//! verifies a signature.

use std::{
    fs,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use anyhow::{Context, anyhow, ensure};
use chrono::Utc;
use reqwest::{Certificate, Client, redirect::Policy};
use rustls::crypto::ring;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Unauthenticated,
    cache::{Cache, Digest, digest},
};
use crate::{
    access::{
        OidcIssuer, Principal,
        jwt::{JwtError, KeySet, unverified_issuer},
    },
    service::detached::detached,
};

/// How old keys may become before they are fetched again, so that a withdrawn key is noticed.
const FRESH: Duration = Duration::from_secs(3600);
/// The shortest time between two fetches of one issuer's keys: tokens with invented keys cause no load there. A token that is signed
/// with a new key is refused for this long after the last fetch.
const PAUSE: Duration = Duration::from_secs(10);
/// The same after a fetch that failed.
const RETRY: Duration = Duration::from_secs(3);
/// How long a verified token is remembered.
const VERIFIED: Duration = Duration::from_secs(300);
/// Timeout of one request to an issuer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest document of an issuer, in bytes.
const LARGEST: usize = 256 << 10;

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
    since: Instant,
    verified: Cache,
}

impl Keys {
    fn new(set: Arc<KeySet>, since: Instant) -> Arc<Self> {
        Arc::new(Self { set, since, verified: Cache::default() })
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

    fn known(&self, issuer: &OidcIssuer) -> Arc<Issuer> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|(settings, _)| settings == issuer) {
            return found.clone();
        }
        // New settings: each token is verified again, with the same keys if they would be fetched from the same place.
        let place = |of: &OidcIssuer| (of.issuer.clone(), of.jwks_uri.clone(), of.ca_file.clone());
        let keys = known.iter().filter(|(settings, _)| place(settings) == place(issuer)).find_map(|(_, it)| it.keys());
        let keys = keys.map(|keys| Keys::new(keys.set.clone(), keys.since));
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
        let away =
            || Unauthenticated::Unavailable(format!("the keys of the issuer {} can't be fetched", issuer.issuer));
        let keys = match self.keys() {
            Some(keys) if keys.are_fresh() => keys,
            // Another request fetches them at this moment: an issuer that doesn't answer must not delay all requests.
            Some(keys) if self.fetched.try_lock().is_err() => keys,
            // Keys that are too old are better than none.
            known => self.fetch(issuer).await.or(known).ok_or_else(away)?,
        };
        let verified = match keys.verify(issuer, token, digest) {
            Err(JwtError::UnknownKey) => self.fetch(issuer).await.ok_or_else(away)?.verify(issuer, token, digest),
            verified => verified,
        };
        verified.map_err(|error| Unauthenticated::Invalid(error.to_string()))
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
            Ok(keys) => {
                tracing::info!(issuer = issuer.issuer, ?keys, "keys of the issuer fetched");
                let keys = Keys::new(Arc::new(keys), Instant::now());
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

/// Fetches the keys of an issuer: at its `jwksUri`, or where its discovery document says (`OpenID` Connect Discovery 1.0).
async fn fetch(issuer: &OidcIssuer) -> anyhow::Result<KeySet> {
    let client = client(issuer)?;
    let url = match &issuer.jwks_uri {
        Some(url) => url.clone(),
        None => {
            let base = issuer.issuer.trim_end_matches('/');
            let document = get(&client, &format!("{base}/.well-known/openid-configuration")).await?;
            let document: Value = serde_json::from_slice(&document).context("parsing the discovery document")?;
            let named = document["issuer"].as_str().unwrap_or_default();
            ensure!(named == issuer.issuer, "the discovery document is of the issuer {named:?}");
            let url = document["jwks_uri"].as_str().context("the discovery document has no `jwks_uri`")?;
            let is_plain = issuer.issuer.starts_with("http:");
            ensure!(url.starts_with("https:") || is_plain, "the `jwks_uri` {url} isn't https");
            url.to_owned()
        }
    };
    KeySet::parse(&get(&client, &url).await?).with_context(|| format!("parsing the key set of {url}"))
}

fn client(issuer: &OidcIssuer) -> anyhow::Result<Client> {
    // Fails if another one is installed already, which serves as well.
    let _ = ring::default_provider().install_default();
    let mut client = Client::builder().timeout(TIMEOUT).redirect(Policy::none());
    if let Some(path) = &issuer.ca_file {
        let pem = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let certificates = Certificate::from_pem_bundle(&pem);
        let certificates = certificates.with_context(|| format!("reading the certificates of {}", path.display()))?;
        client = client.tls_certs_merge(certificates);
    }
    client.build().context("creating a client for the issuer")
}

async fn get(client: &Client, url: &str) -> anyhow::Result<Vec<u8>> {
    let answer = client.get(url).send().await.with_context(|| format!("asking for {url}"))?;
    ensure!(answer.status().is_success(), "{url} answered with {}", answer.status());
    let mut answer = answer;
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.with_context(|| format!("reading {url}"))? {
        if body.len() + part.len() > LARGEST {
            return Err(anyhow!("{url} has more than {LARGEST} bytes"));
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}
