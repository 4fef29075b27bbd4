//! Tokens of Kubernetes service accounts and users, which the API server reviews.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{
    Unauthenticated,
    checks::{Checks, Gate},
};
use sparkgate_access::{Principal, Provider, jwt::unverified_claims};
use sparkgate_cluster::{self, Cluster, TokenUser};

/// How long an answer of the API server counts. A token that is revoked is accepted for this long.
const FRESH: Duration = Duration::from_secs(30);
/// How far the clocks of the API server and of this machine may differ.
const LEEWAY: chrono::TimeDelta = chrono::TimeDelta::minutes(5);
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The reviews of tokens by the API server.
pub(super) struct TokenReviews {
    cluster: Cluster,
    checks: Checks,
}

impl TokenReviews {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { cluster, checks: Checks::default() }
    }

    /// Returns the user of a token.
    pub(super) async fn principal(
        &self,
        token: &str,
        audiences: &[String],
        gate: Gate<'_>,
    ) -> Result<Arc<Principal>, Unauthenticated> {
        self.reviewed(token, audiences, gate, FRESH).await
    }

    /// Returns whether the API server still accepts a token, as it said at most `fresh` ago. While it doesn't answer, it does.
    pub(super) async fn is_valid(&self, token: &str, audiences: &[String], fresh: Duration) -> bool {
        let answer = self.reviewed(token, audiences, Gate::open(), fresh).await;
        matches!(answer, Ok(_) | Err(Unauthenticated::Unavailable(_)))
    }

    async fn reviewed(
        &self,
        token: &str,
        audiences: &[String],
        gate: Gate<'_>,
        fresh: Duration,
    ) -> Result<Arc<Principal>, Unauthenticated> {
        let claims = unverified_claims(token);
        let end = claims.as_ref().and_then(|claims| DateTime::from_timestamp(claims.get("exp")?.as_i64()?, 0));
        if !may_be_accepted(claims.as_ref(), end, audiences) {
            return Err(not_accepted(audiences));
        }
        let check = async {
            let user = self.cluster.review_token(token, audiences).await?;
            let reviewed = user.map_or_else(|| Err(not_accepted(audiences)), |user| principal(&user));
            // The API server has verified the claims.
            Ok::<_, sparkgate_cluster::Error>(
                reviewed.map(|principal| principal.with_expiry(end.map(|end| end + LEEWAY))),
            )
        };
        self.checks.principal(token, gate, fresh, "the API server, which reviews tokens,", check).await
    }
}

/// Returns `false` for a token that no API server accepts for these audiences, as its claims say, so that it needs no review. They
/// aren't verified, and prove nothing else. Not every token has claims, and only those of service accounts name their audience.
fn may_be_accepted(claims: Option<&Map<String, Value>>, end: Option<DateTime<Utc>>, audiences: &[String]) -> bool {
    let Some(claims) = claims else { return true };
    let is_ours = |audience: &Value| audience.as_str().is_some_and(|name| audiences.iter().any(|ours| ours == name));
    let is_of_account = claims.get("sub").and_then(Value::as_str).is_some_and(|sub| sub.starts_with(SERVICE_ACCOUNT));
    let is_for_us = match claims.get("aud") {
        Some(Value::Array(audiences)) if is_of_account => audiences.iter().any(is_ours),
        Some(audience) if is_of_account => is_ours(audience),
        _ => true,
    };
    is_for_us && end.is_none_or(|end| Utc::now() < end + LEEWAY)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_that_no_api_server_accepts_needs_no_review() {
        let now = Utc::now();
        let may = |claims: Value, minutes: i64| {
            let end = now + chrono::TimeDelta::minutes(minutes);
            may_be_accepted(claims.as_object(), Some(end), &["sparkgate".to_owned()])
        };
        let account = |aud: Value| json!({"sub": "system:serviceaccount:ci:airflow", "aud": aud});
        assert!(may(account(json!(["other", "sparkgate"])), 60) && may(account(json!("sparkgate")), 60));
        assert!(
            !may(account(json!(["other"])), 60) && !may(account(json!("other")), 60) && !may(account(json!([])), 60)
        );
        assert!(
            may(json!({"sub": "alice", "aud": "kubernetes"}), 60),
            "the API server knows for whom a user's token is"
        );
        assert!(may(json!({"sub": "alice"}), -4) && !may(json!({"sub": "alice"}), -6));
        assert!(may_be_accepted(None, None, &[]), "a token may be any text");
    }
}
