//! The caller: who it is, and where it can log in.

use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::reply::Reply;
use sparkgate_access::Namespaces;
use sparkgate_web::{
    problem::{Problem, ProblemBody},
    query::{NoParameters, Query},
    session::Caller,
    state::AppState,
};

/// The caller of a request, and what it may do.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Me {
    /// `<provider>:<name>`.
    #[schema(example = "corp:alice")]
    subject: String,
    #[schema(example = json!(["corp:data-eng"]))]
    groups: Vec<String>,
    /// The tenants in which the caller has a role.
    tenants: Vec<TenantRole>,
    /// When the credentials end.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
}

/// The role of the caller in a tenant.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TenantRole {
    #[schema(example = "analytics")]
    name: String,
    #[schema(example = "submitter")]
    role: &'static str,
    /// The tenant's namespaces. Empty if it has all that the gateway serves.
    namespaces: Vec<String>,
    /// The Spark releases that its submissions may use.
    #[schema(example = json!(["3.5.9", "4.3.0"]))]
    spark_versions: Vec<String>,
    /// The Spark release of its submissions that select none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "4.3.0")]
    default_spark_version: Option<String>,
}

/// Get the caller
///
/// The principal that the gateway recognized in the request's credentials, with its roles.
#[utoipa::path(
    get, path = "/v1/me", tag = "Access", operation_id = "getCaller",
    responses(
        (status = 200, description = "The caller", body = Me),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn me(Caller(caller): Caller, _: Query<NoParameters>) -> Result<Reply<Me>, Problem> {
    let (access, principal) = (caller.access(), caller.principal());
    let tenants = access.tenants().filter_map(|tenant| {
        let role = access.role_in(principal, &tenant.name)?.as_str();
        let namespaces = match &tenant.namespaces {
            Namespaces::All => Vec::new(),
            Namespaces::Listed(names) => names.clone(),
        };
        let lines = caller.spark_lines();
        let spark_versions = lines.permitted(tenant).map(|version| version.to_string()).collect();
        let default_spark_version = lines.default_of(tenant).map(|version| version.to_string());
        Some(TenantRole { name: tenant.name.clone(), role, namespaces, spark_versions, default_spark_version })
    });
    Ok(Reply::ok(Me {
        subject: principal.subject().to_owned(),
        groups: principal.groups().iter().cloned().collect(),
        tenants: tenants.collect(),
        expires_at: principal.expires(),
    }))
}

/// The issuers of tokens that the gateway accepts.
#[derive(Serialize, ToSchema)]
pub(super) struct Login {
    issuers: Vec<Issuer>,
}

/// An OIDC issuer with a client for the command line.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Issuer {
    #[schema(example = "corp")]
    name: String,
    #[schema(example = "https://id.example.org/realms/data")]
    issuer: String,
    #[schema(example = "sparkgate-cli")]
    client_id: String,
}

/// Find out where to log in
///
/// Needs no credentials. `sparkgate login` uses the device authorization grant (RFC 8628) of one of these issuers.
#[utoipa::path(
    get, path = "/v1/login", tag = "Access", operation_id = "getLogin",
    responses(
        (status = 200, description = "The issuers; none if the gateway has none for the command line", body = Login),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn login(State(state): State<AppState>, _: Query<NoParameters>) -> Result<Reply<Login>, Problem> {
    let tenancy = state.service.access.current();
    let oidc = tenancy.access().authentication().map(|providers| providers.oidc.as_slice()).unwrap_or_default();
    let issuers = oidc.iter().filter_map(|issuer| {
        let (name, client_id) = (issuer.name.clone(), issuer.client_id.clone()?);
        Some(Issuer { name, issuer: issuer.issuer.clone(), client_id })
    });
    Ok(Reply::ok(Login { issuers: issuers.collect() }))
}
