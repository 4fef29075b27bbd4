//! Tokens of Kubernetes service accounts and users, which the API server reviews.

use std::{sync::Arc, time::Duration};

use super::{Unauthenticated, cache::Cache};
use crate::{
    access::{Principal, Provider},
    cluster::{self, Cluster, TokenUser},
};

/// How long an answer of the API server counts. A token that is revoked is accepted for this long.
const FRESH: Duration = Duration::from_secs(30);

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
        let check = async {
            let user = self.cluster.review_token(token, audiences).await?;
            Ok::<_, cluster::Error>(user.map_or_else(|| Err(not_accepted(audiences)), |user| principal(&user)))
        };
        self.known.principal(token, FRESH, "the API server, which reviews tokens,", check).await
    }
}

fn principal(user: &TokenUser) -> Result<Principal, Unauthenticated> {
    let known = Principal::new(Provider::Kubernetes, &user.name);
    let known = known.map_err(|error| Unauthenticated::Invalid(error.to_string()))?;
    Ok(known.with_groups(user.groups.iter().map(String::as_str)))
}

fn not_accepted(audiences: &[String]) -> Unauthenticated {
    let audiences = audiences.join(" or ");
    Unauthenticated::Invalid(format!("Kubernetes doesn't accept the token, or it isn't for the audience {audiences}"))
}
