//! Finds out who sent a request. Each provider of the access file turns its kind of credentials into a principal; the first kind
//! that a request has decides.

mod api_keys;
mod browser_sessions;
mod cache;
mod checks;
mod issuer_client;
mod kubernetes;
mod oidc;
mod sign_in;

use std::{future::pending, net::IpAddr, ptr, sync::Arc, time::Duration};

use chrono::Utc;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::sleep;

use crate::{access_file::AccessFile, session::Session, tenancy::Tenancy};
use api_keys::ApiKeys;
use browser_sessions::BrowserSessions;
use checks::Gate;
use kubernetes::TokenReviews;
use oidc::Issuers;
use sparkgate_access::{ApiKey, Authentication, ClientCertificate, Kubernetes, Principal, Provider};
use sparkgate_cluster::Cluster;
use sparkgate_common::{error::error_chain, rate_limits::Exceeded};
use sparkgate_store::{BrowserSessionId, Store};

pub use sign_in::{Requester, SignIn, SignInAnswer, SignInError, SignInWays, SignedIn};

/// How often the credentials of an open stream are checked.
const LOOK: Duration = Duration::from_secs(15);

/// The credentials of a request, as it carries them.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The token of `Authorization: Bearer`.
    pub bearer: Option<&'a str>,
    /// The client certificate, in DER. Its chain is verified.
    pub certificate: Option<&'a [u8]>,
    /// The headers of the request. One that occurs twice is an error: a proxy may have added the second.
    pub header: &'a (dyn Fn(&str) -> Result<Option<&'a str>, Unauthenticated> + Sync),
    /// The client's address.
    pub address: Option<IpAddr>,
    /// The cookie of a browser's session, if it counts for the request.
    pub session: Option<SessionCookie<'a>>,
}

/// The cookie of a browser's session.
#[derive(Clone, Copy)]
pub struct SessionCookie<'a> {
    pub value: &'a str,
    /// Whether the request is for a page that its user opens, and not one that a page sends by itself.
    pub is_use: bool,
}

/// The caller of a request.
#[derive(Debug, Clone)]
pub struct Authenticated {
    pub principal: Arc<Principal>,
    /// The access that applies to it.
    pub tenancy: Arc<Tenancy>,
    /// The browser's session, if the request has its cookie instead of credentials.
    pub session: Option<BrowserSessionId>,
    /// The token that Kubernetes has accepted, to ask it again.
    pub reviewed: Option<Arc<SecretString>>,
}

/// Why a caller isn't known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    /// The request has no credentials that a provider accepts.
    #[error("send a token or an API key: Authorization: Bearer …")]
    Missing,
    /// The credentials are wrong. The text helps the caller and doesn't quote them.
    #[error("{0}")]
    Invalid(String),
    /// The cookie is of no session that is or was.
    #[error("send a token or an API key: Authorization: Bearer …")]
    UnknownSession,
    /// They aren't checked, because too many of their address were wrong.
    #[error("{0}")]
    Limited(Exceeded),
    /// They can't be checked now: what can't be reached.
    #[error("{0}")]
    Unavailable(String),
}

impl Unauthenticated {
    /// Returns the reason for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Invalid(_) | Self::UnknownSession => "invalid",
            Self::Limited(_) => "limited",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

/// The providers of credentials, with what they remember. Shared by all requests.
pub struct Authenticator {
    access: Arc<AccessFile>,
    api_keys: ApiKeys,
    issuers: Arc<Issuers>,
    reviews: TokenReviews,
    sessions: BrowserSessions,
}

impl Authenticator {
    pub fn new(store: Store, cluster: Cluster, access: Arc<AccessFile>) -> Self {
        Self {
            access,
            api_keys: ApiKeys::new(store.clone()),
            issuers: Arc::default(),
            reviews: TokenReviews::new(cluster),
            sessions: BrowserSessions::new(store),
        }
    }

    /// Returns the caller of a request.
    ///
    /// # Errors
    /// [`Unauthenticated`].
    pub async fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Authenticated, Unauthenticated> {
        let tenancy = self.access.current();
        let (principal, session) = match tenancy.access().authentication() {
            None => (Arc::new(Principal::anonymous()), None),
            Some(providers) => match self.principal(&tenancy, providers, credentials).await {
                Err(Unauthenticated::Missing) => {
                    self.authenticate_session(providers, credentials, Gate::new(&tenancy, credentials.address)).await?
                }
                principal => (principal?, None),
            },
        };
        let token = credentials.bearer.filter(|_| *principal.provider() == Provider::Kubernetes);
        let reviewed = token.map(|token| Arc::new(token.to_owned().into()));
        Ok(Authenticated { principal, tenancy, session, reviewed })
    }

    /// Returns the caller of requests to the port for Spark's clients, if the access file has one.
    pub fn authenticate_spark_listener(&self) -> Option<Authenticated> {
        let tenancy = self.access.current();
        let listener = tenancy.access().authentication()?.spark_listener.as_ref()?;
        Some(Authenticated { principal: Arc::new(listener.principal.clone()), tenancy, session: None, reviewed: None })
    }

    /// Returns the principal of a browser's session.
    async fn authenticate_session(
        &self,
        providers: &Authentication,
        credentials: &Credentials<'_>,
        gate: Gate<'_>,
    ) -> Result<(Arc<Principal>, Option<BrowserSessionId>), Unauthenticated> {
        let SessionCookie { value, is_use } = credentials.session.ok_or(Unauthenticated::Missing)?;
        let (principal, id) =
            self.sessions.principal(value, is_use, (&self.issuers, &self.api_keys), (providers, gate)).await?;
        Ok((principal, Some(id)))
    }

    /// Counts a failed login from an address.
    ///
    /// # Errors
    /// [`Exceeded`] if there were too many.
    pub fn count_failed_login(&self, address: IpAddr) -> Result<(), Exceeded> {
        self.access.current().count_failed_login(address)
    }

    /// Waits until a caller's credentials end: they expire or are revoked, or there is another access file. What was opened with
    /// them ends then, and the client has to authenticate itself again.
    pub async fn end_of(self: Arc<Self>, caller: Session) {
        if caller.access().authentication().is_none() {
            return pending().await;
        }
        while self.is_valid(&caller).await {
            let left = caller.principal().expires().and_then(|end| (end - Utc::now()).to_std().ok());
            sleep(left.unwrap_or(LOOK).min(LOOK)).await;
        }
    }

    async fn is_valid(&self, caller: &Session) -> bool {
        let principal = caller.principal();
        let is_unchanged = ptr::eq(Arc::as_ptr(&self.access.current()), caller.tenancy());
        let is_key = *principal.provider() == Provider::ApiKey;
        is_unchanged
            && !principal.is_expired(Utc::now())
            && (!is_key || self.api_keys.are_valid(principal).await)
            && match caller.browser_session() {
                Some(id) => self.sessions.lasts(id).await,
                None => true,
            }
            && match (caller.reviewed(), caller.access().authentication().and_then(|all| all.kubernetes.as_ref())) {
                (Some(token), Some(Kubernetes { audiences })) => {
                    self.reviews.is_valid(token.expose_secret(), audiences, LOOK).await
                }
                (Some(_), None) => false,
                (None, _) => true,
            }
    }

    async fn principal(
        &self,
        tenancy: &Tenancy,
        providers: &Authentication,
        credentials: &Credentials<'_>,
    ) -> Result<Arc<Principal>, Unauthenticated> {
        let Some(token) = credentials.bearer else {
            return authenticate_certificate(providers, credentials)
                .unwrap_or(Err(Unauthenticated::Missing))
                .map(Arc::new);
        };
        let gate = Gate::new(tenancy, credentials.address);
        if ApiKey::is_one(token) && providers.api_keys {
            return self.api_keys.principal(token, gate).await;
        }
        if let Some(answer) = self.issuers.principal(token, &providers.oidc).await {
            return answer;
        }
        let mut wrong = "the token is of no issuer that this gateway accepts".to_owned();
        if let (Some(secret), Some(jws)) = (tenancy.spark_secret(), &providers.spark_jws) {
            match secret.authenticate(token, jws.require_expiration, Utc::now()) {
                Ok(principal) => return Ok(Arc::new(principal)),
                Err(error) => wrong = error.to_string(),
            }
        }
        match &providers.kubernetes {
            Some(kubernetes) => self.reviews.principal(token, &kubernetes.audiences, gate).await,
            None => Err(Unauthenticated::Invalid(wrong)),
        }
    }
}

/// Returns the principal that a client certificate stands for: that of its owner, or, if it is a trusted proxy's, the one that the
/// proxy names. `None` without a certificate that counts.
fn authenticate_certificate(
    providers: &Authentication,
    credentials: &Credentials<'_>,
) -> Option<Result<Principal, Unauthenticated>> {
    let invalid = |error: &dyn std::error::Error| Unauthenticated::Invalid(error_chain(error));
    let certificate = match ClientCertificate::parse(credentials.certificate?) {
        Ok(certificate) => certificate,
        Err(error) => return Some(Err(invalid(&error))),
    };
    if let Some(proxy) = providers.proxy.as_ref().filter(|proxy| certificate.is_of(proxy)) {
        let header = credentials.header;
        let groups = proxy.groups_header.as_deref().map_or(Ok(None), header);
        let (user, groups) = match (header(&proxy.user_header), groups) {
            (Ok(user), Ok(groups)) => (user?, groups),
            (Err(why), _) | (_, Err(why)) => return Some(Err(why)),
        };
        return Some(proxy.principal(user, groups).map_err(|error| invalid(&error)));
    }
    let certificates = providers.certificates.as_ref()?;
    Some(certificate.principal(certificates.subject).map_err(|error| invalid(&error)))
}
