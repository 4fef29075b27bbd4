//! Tokens of OIDC issuers. Their keys are fetched when a token needs them, and kept: while an issuer is away, tokens that were
//! signed with known keys stay valid.

use std::{
    collections::HashMap,
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

use super::Unauthenticated;
use crate::access::{
    OidcIssuer, Principal,
    jwt::{JwtError, KeySet, unverified_issuer},
};

/// How old keys may become before they are fetched again, so that a withdrawn key is noticed.
const FRESH: Duration = Duration::from_secs(3600);
/// The shortest time between two fetches of one issuer's keys: tokens with invented keys cause no load there. A token that is signed
/// with a new key is refused for this long after the last fetch.
const PAUSE: Duration = Duration::from_secs(10);
/// The same after a fetch that failed.
const RETRY: Duration = Duration::from_secs(3);
/// Timeout of one request to an issuer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest document of an issuer, in bytes.
const LARGEST: usize = 256 << 10;

/// The issuers that have been asked, by their settings.
#[derive(Default)]
pub(super) struct Issuers(Mutex<HashMap<String, Arc<Issuer>>>);

/// The keys of one issuer.
#[derive(Default)]
struct Issuer {
    keys: RwLock<Option<(Arc<KeySet>, Instant)>>,
    /// The last fetch. Held while one is in progress.
    fetched: tokio::sync::Mutex<Option<Fetch>>,
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
        let named = unverified_issuer(token).ok()?;
        let issuer = issuers.iter().find(|issuer| issuer.issuer == named)?;
        let known = self.known(issuer);
        Some(known.principal(issuer, token).await.map(Arc::new))
    }

    fn known(&self, issuer: &OidcIssuer) -> Arc<Issuer> {
        // Other settings of the same issuer have keys of their own.
        let settings = format!("{}\n{:?}\n{:?}", issuer.issuer, issuer.jwks_uri, issuer.ca_file);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(settings).or_default().clone()
    }
}

impl Issuer {
    async fn principal(&self, issuer: &OidcIssuer, token: &str) -> Result<Principal, Unauthenticated> {
        let away =
            || Unauthenticated::Unavailable(format!("the keys of the issuer {} can't be fetched", issuer.issuer));
        let keys = match self.keys() {
            Some((keys, at)) if at.elapsed() < FRESH => keys,
            // Another request fetches them at this moment: an issuer that doesn't answer must not delay all requests.
            Some((keys, _)) if self.fetched.try_lock().is_err() => keys,
            // Keys that are too old are better than none.
            known => self.fetch(issuer).await.or_else(|| known.map(|(keys, _)| keys)).ok_or_else(away)?,
        };
        let verified = match issuer.authenticate(token, &keys, Utc::now()) {
            Err(JwtError::UnknownKey) => {
                let newer = self.fetch(issuer).await.ok_or_else(away)?;
                issuer.authenticate(token, &newer, Utc::now())
            }
            verified => verified,
        };
        verified.map_err(|error| Unauthenticated::Invalid(error.to_string()))
    }

    fn keys(&self) -> Option<(Arc<KeySet>, Instant)> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches the keys, unless that was done a moment ago. One request of many fetches. Returns `None` if the last fetch failed.
    async fn fetch(&self, issuer: &OidcIssuer) -> Option<Arc<KeySet>> {
        let asked = Instant::now();
        let mut last = self.fetched.lock().await;
        if let Some(fetch) = last.filter(|fetch| fetch.counts(asked)) {
            return self.keys().map(|(keys, _)| keys).filter(|_| fetch.succeeded);
        }
        // It counts as failed if this request is cancelled.
        *last = Some(Fetch { began: Instant::now(), succeeded: false });
        match fetch(issuer).await {
            Ok(keys) => {
                tracing::info!(issuer = issuer.issuer, ?keys, "keys of the issuer fetched");
                let keys = Arc::new(keys);
                let mut known = self.keys.write().unwrap_or_else(PoisonError::into_inner);
                *known = Some((keys.clone(), Instant::now()));
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
