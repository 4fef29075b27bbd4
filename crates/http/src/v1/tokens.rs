//! API keys.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::reply::Reply;
use sparkgate_service::{ApiKey, CreatedKey, KeyRequest};
use sparkgate_web::{
    id::part_of_path,
    json,
    problem::{Code, Problem, ProblemBody, responses::Problems},
    query::{NoParameters, Query},
    session::Caller,
    state::AppState,
};

/// An API key, without its text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKey)]
pub(super) struct Token {
    /// The public part of the key.
    #[schema(example = "6f1c2a9b03d4e5f6")]
    id: String,
    #[schema(example = "airflow")]
    name: String,
    /// The tenant of the key. A key of all tenants has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "analytics")]
    tenant: Option<String>,
    #[schema(example = "submitter")]
    role: String,
    created_at: DateTime<Utc>,
    /// The principal that created it.
    #[schema(example = "corp:alice")]
    created_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<DateTime<Utc>>,
    /// When it was used last, accurate to five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<DateTime<Utc>>,
    /// The key itself, only in the response to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "sg_6f1c2a9b03d4e5f6_…")]
    token: Option<String>,
}

impl From<ApiKey> for Token {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            tenant: key.tenant,
            role: key.role,
            created_at: key.created_at,
            created_by: key.created_by,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
            token: None,
        }
    }
}

/// The API keys that the caller may manage.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKeyList)]
pub(super) struct TokenList {
    tokens: Vec<Token>,
}

/// What a new API key is to be.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewApiKey)]
pub(super) struct NewToken {
    /// A name for people; it needn't be unique.
    #[schema(example = "airflow", max_length = 128, pattern = "^[A-Za-z0-9][A-Za-z0-9._@/-]*$")]
    name: String,
    /// The tenant in which the key has its role; all tenants without it.
    #[schema(example = "analytics")]
    tenant: Option<String>,
    /// At most the caller's own role.
    #[schema(value_type = RoleWord)]
    role: String,
    /// How long the key is valid; without it, until it is revoked.
    #[schema(example = 7_776_000, minimum = 1, maximum = 315_619_200)]
    expires_in_seconds: Option<u64>,
}

/// A role in a tenant (docs/operate/access.md).
#[derive(ToSchema)]
#[schema(as = Role, rename_all = "lowercase")]
#[expect(dead_code, reason = "only describes the field; the access layer parses it")]
enum RoleWord {
    Viewer,
    Submitter,
    Operator,
    Admin,
}

/// List API keys
///
/// The newest first; revoked and expired ones, too. The keys themselves are never shown again.
#[utoipa::path(
    get, path = "/v1/tokens", tag = "Access", operation_id = "listTokens",
    responses(Problems, (status = 200, description = "All API keys that the caller may manage", body = TokenList))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Caller(caller): Caller,
    _: Query<NoParameters>,
) -> Result<Reply<TokenList>, Problem> {
    let keys = state.service.api_keys.list(&caller).await?;
    Ok(Reply::ok(TokenList { tokens: keys.into_iter().map(Token::from).collect() }))
}

/// Create an API key
///
/// For a program that submits or reads. `token` is in this response only.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "Access", operation_id = "createToken", request_body = NewToken,
    responses(
        Problems,
        (status = 201, description = "The new key, with its text", body = Token),
        (status = 400, description = "The request is invalid; the problem names the fields", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "The caller may not grant this role there", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    Caller(caller): Caller,
    _: Query<NoParameters>,
    body: Bytes,
) -> Result<Response, Problem> {
    let new: NewToken = json::parsed(&body, "an API key")?;
    let role = new.role.parse().map_err(|error| Problem::field("#/role".to_owned(), format!("{error}")))?;
    let expires_in = new.expires_in_seconds.map(Duration::from_secs);
    let request = KeyRequest { name: new.name, tenant: new.tenant, role, expires_in };
    let CreatedKey { key, text } = state.service.api_keys.create(&caller, request).await?;
    let mut token = Token::from(key);
    token.token = Some(text.expose_secret().to_owned());
    Ok(Reply::ok(token).with_status(StatusCode::CREATED).into_response())
}

/// Revoke an API key
///
/// Within seconds, no replica accepts it any more.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", tag = "Access", operation_id = "revokeToken", params(TokenId),
    responses(
        Problems,
        (status = 204, description = "The key is revoked"),
        (status = 404, description = "There is no such key that isn't revoked", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn revoke(
    State(state): State<AppState>,
    Caller(caller): Caller,
    TokenId { id }: TokenId,
    _: Query<NoParameters>,
) -> Result<StatusCode, Problem> {
    match state.service.api_keys.revoke(&caller, &id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::new(Code::NotFound, format!("There is no API key {id}, or it is revoked already."))),
    }
}

/// `{id}` of the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct TokenId {
    /// The key's id
    #[param(value_type = String)]
    id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for TokenId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self { id: part_of_path(parts, state, "id").await })
    }
}
