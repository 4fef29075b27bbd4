//! Tokens of Kubernetes service accounts and users, which the API server reviews.

use std::{sync::Arc, time::Duration};

use super::{
    Unauthenticated,
    cache::{Cache, digest},
};
use crate::{
    access::{Principal, Provider},
    cluster::Cluster,
    service::error::error_chain,
};

/// How long an answer of the API server counts. A token that is revoked is accepted for this long.
const FRESH: Duration = Duration::from_secs(30);
/// How long it counts while the API server doesn't answer.
const STALE: Duration = Duration::from_secs(300);

/// The reviews of tokens by the API server.
pub(super) struct TokenReviews {
    cluster: Cluster,
    known: Cache,
}

impl TokenReviews {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { cluster, known: Cache::default() }
    }

    /// Returns the user of a token.
    pub(super) async fn principal(&self, token: &str, audiences: &[String]) -> Result<Arc<Principal>, Unauthenticated> {
        let key = digest(token);
        if let Some(known) = self.known.get(&key, FRESH) {
            return Ok(known);
        }
        match self.cluster.review_token(token, audiences).await {
            Ok(Some(user)) => {
                let groups = user.groups.iter().map(String::as_str);
                let principal = Principal::new(Provider::Kubernetes, &user.name).map(|known| known.with_groups(groups));
                let principal = principal.map_err(|error| Unauthenticated::Invalid(error.to_string()))?;
                let principal = Arc::new(principal);
                self.known.put(key, principal.clone(), STALE);
                Ok(principal)
            }
            Ok(None) => {
                self.known.forget(&key);
                let audiences = audiences.join(" or ");
                Err(Unauthenticated::Invalid(format!(
                    "Kubernetes doesn't accept the token, or it isn't for the audience {audiences}"
                )))
            }
            Err(error) => self.known.get(&key, STALE).ok_or_else(|| {
                tracing::warn!("a caller's token can't be reviewed: {}", error_chain(&error));
                Unauthenticated::Unavailable("the API server, which reviews tokens, is not available".to_owned())
            }),
        }
    }
}
