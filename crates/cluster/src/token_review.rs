//! Asks the API server whose token a caller has sent: `TokenReview` of `authentication.k8s.io/v1`.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, api::PostParams};

use super::{answer::nothing_of_kubernetes, call::call, cluster::Cluster, error::Error};

const TIMEOUT: Duration = Duration::from_secs(5);
const ACTION: &str = "reviewing a caller's token";

/// The user whom a token authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUser {
    /// Such as `system:serviceaccount:ci:airflow`.
    pub name: String,
    pub groups: Vec<String>,
}

impl Cluster {
    /// Returns the user of a token that was issued for one of these audiences; `None` if the API server doesn't accept it.
    ///
    /// # Errors
    /// The API server doesn't answer, or the account may not create `tokenreviews.authentication.k8s.io`.
    pub async fn review_token(&self, token: &str, audiences: &[String]) -> Result<Option<TokenUser>, Error> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: token.to_owned(), audiences: Some(audiences.to_vec()) },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = call(ACTION, TIMEOUT, reviews.create(&PostParams::default(), &review)).await?;
        let status = answer.status.ok_or_else(|| nothing_of_kubernetes(ACTION.to_owned()))?;
        // An API server that doesn't know audiences leaves them out: such a token may be meant for another service.
        let of_ours = status.audiences.iter().flatten().any(|audience| audiences.contains(audience));
        if !(status.authenticated.unwrap_or(false) && of_ours) {
            return Ok(None);
        }
        let user = status.user.unwrap_or_default();
        Ok(user.username.map(|name| TokenUser { name, groups: user.groups.unwrap_or_default() }))
    }
}
