//! HTTP requests to an OIDC issuer: its discovery document, its keys, and its tokens.

use std::fs;

use anyhow::{Context, anyhow, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use form_urlencoded::{Serializer, byte_serialize};
use reqwest::{Certificate, Client, Response, header, redirect::Policy};
use rustls::crypto::ring;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Duration;

use sparkgate_access::{ConsoleClient, OidcIssuer, jwt::KeySet};

/// Timeout of one request to an issuer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest document of an issuer, in bytes.
const LARGEST: usize = 256 << 10;

/// Where browsers sign in, by the discovery document (`OpenID` Connect Discovery 1.0, RFC 8414).
#[derive(Debug)]
pub(super) struct Endpoints {
    pub(super) authorization: String,
    token: String,
    /// Where a browser ends its session with the issuer (`OpenID` Connect RP-Initiated Logout 1.0).
    pub(super) end_session: Option<String>,
    /// Whether the answer to a sign-in names the issuer (RFC 9207).
    pub(super) names_issuer: bool,
    /// Whether the client's secret is a field of the form instead of a header.
    posts_secret: bool,
}

/// What a token endpoint grants.
#[derive(Deserialize)]
pub(super) struct Granted {
    pub(super) access_token: String,
    pub(super) id_token: Option<String>,
    pub(super) refresh_token: Option<String>,
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoTokens {
    /// The issuer refused, with a code of RFC 6749, section 5.2.
    #[error("the issuer refused with `{0}`")]
    Refused(String),
    #[error(transparent)]
    Away(#[from] anyhow::Error),
}

/// Fetches the keys of an issuer, at its `jwksUri` or where its discovery document says, and its endpoints if browsers sign in with
/// it.
pub(super) async fn fetch(issuer: &OidcIssuer) -> anyhow::Result<(KeySet, Option<Endpoints>)> {
    let client = client(issuer)?;
    let document = match issuer.jwks_uri.is_none() || issuer.console.is_some() {
        true => Some(discovery(&client, issuer).await?),
        false => None,
    };
    let url = match (&issuer.jwks_uri, &document) {
        (Some(url), _) => url.clone(),
        (None, document) => {
            let named = document.as_ref().map(|document| url_of(issuer, document, "jwks_uri")).transpose()?.flatten();
            named.context("the discovery document has no `jwks_uri`")?
        }
    };
    let body = read(&url, client.get(&url).send().await.with_context(|| format!("asking for {url}"))?).await?;
    let keys = KeySet::parse(&body).with_context(|| format!("parsing the key set of {url}"))?;
    let endpoints = document.filter(|_| issuer.console.is_some()).map(|document| endpoints(issuer, &document));
    Ok((keys, endpoints.transpose()?.flatten()))
}

async fn discovery(client: &Client, issuer: &OidcIssuer) -> anyhow::Result<Value> {
    let url = format!("{}/.well-known/openid-configuration", issuer.issuer.trim_end_matches('/'));
    let answer = client.get(&url).send().await.with_context(|| format!("asking for {url}"))?;
    let document: Value =
        serde_json::from_slice(&read(&url, answer).await?).context("parsing the discovery document")?;
    let named = document["issuer"].as_str().unwrap_or_default();
    ensure!(named == issuer.issuer, "the discovery document is of the issuer {named:?}");
    Ok(document)
}

/// Returns an address of the discovery document, which is HTTPS if that of the issuer is.
fn url_of(issuer: &OidcIssuer, document: &Value, name: &str) -> anyhow::Result<Option<String>> {
    let Some(url) = document[name].as_str() else { return Ok(None) };
    let is_plain = issuer.issuer.starts_with("http:") && url.starts_with("http:");
    ensure!(url.starts_with("https:") || is_plain, "the `{name}` {url} isn't https");
    Ok(Some(url.to_owned()))
}

fn endpoints(issuer: &OidcIssuer, document: &Value) -> anyhow::Result<Option<Endpoints>> {
    let url = |name: &str| url_of(issuer, document, name);
    let (Some(authorization), Some(token)) = (url("authorization_endpoint")?, url("token_endpoint")?) else {
        return Ok(None);
    };
    let methods = document["token_endpoint_auth_methods_supported"].as_array();
    let has = |method: &str| methods.is_some_and(|methods| methods.iter().any(|name| name == method));
    Ok(Some(Endpoints {
        authorization,
        token,
        end_session: url("end_session_endpoint")?,
        names_issuer: document["authorization_response_iss_parameter_supported"] == true,
        posts_secret: has("client_secret_post") && !has("client_secret_basic"),
    }))
}

/// Asks the token endpoint for tokens (RFC 6749, section 3.2).
pub(super) async fn tokens(
    issuer: &OidcIssuer,
    console: &ConsoleClient,
    endpoints: &Endpoints,
    grant: &[(&str, &str)],
) -> Result<Granted, NoTokens> {
    let (authorization, form) = token_request(console, endpoints, grant)?;
    let mut request = client(issuer)?.post(&endpoints.token).header(header::ACCEPT, "application/json");
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
    let url = &endpoints.token;
    let answer = request.send().await.with_context(|| format!("asking {url} for tokens"))?;
    let status = answer.status();
    if status.is_client_error() {
        let body = limited(url, answer).await?;
        let error = serde_json::from_slice::<Value>(&body).ok().and_then(|body| body["error"].as_str().map(code));
        return Err(NoTokens::Refused(error.unwrap_or_else(|| status.as_u16().to_string())));
    }
    let body = read(url, answer).await?;
    Ok(serde_json::from_slice(&body).with_context(|| format!("parsing the tokens of {url}"))?)
}

/// Returns the header and the form of a request for tokens, with the client's secret in one of them (RFC 6749, section 2.3.1).
fn token_request(
    console: &ConsoleClient,
    endpoints: &Endpoints,
    grant: &[(&str, &str)],
) -> anyhow::Result<(Option<String>, String)> {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(grant).append_pair("client_id", &console.client_id);
    let Some(path) = &console.client_secret_file else { return Ok((None, form.finish())) };
    let secret = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    if endpoints.posts_secret {
        form.append_pair("client_secret", secret.trim());
        return Ok((None, form.finish()));
    }
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(&console.client_id), encoded(secret.trim())));
    Ok((Some(format!("Basic {pair}")), form.finish()))
}

/// Returns a code of an error as it may be shown and logged.
fn code(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect()
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

/// Reads the body of a success.
async fn read(url: &str, answer: Response) -> anyhow::Result<Vec<u8>> {
    ensure!(answer.status().is_success(), "{url} answered with {}", answer.status());
    limited(url, answer).await
}

async fn limited(url: &str, mut answer: Response) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.with_context(|| format!("reading {url}"))? {
        if body.len() + part.len() > LARGEST {
            return Err(anyhow!("{url} has more than {LARGEST} bytes"));
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}
