//! An `OpenID` provider, as far as a command-line client needs it: discovery, the device flow, renewal and revocation of tokens.

pub(super) mod device;

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use form_urlencoded::Serializer;
use reqwest::{Client, RequestBuilder, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::timeout;

use super::{
    clean,
    connection::Trust,
    document,
    error::{Error, root},
    secret::Secret,
    server::Server,
    transport,
};

/// The timeout of a request, with its whole response.
const PATIENCE: Duration = Duration::from_secs(30);

/// A provider whose endpoints are known.
#[derive(Debug)]
pub(super) struct Issuer {
    url: String,
    client_id: String,
    endpoints: Endpoints,
    http: Client,
}

/// The part of the provider's metadata that is used (`OpenID` Connect Discovery 1.0, RFC 8414, RFC 8628).
#[derive(Debug, Deserialize)]
struct Endpoints {
    issuer: String,
    token_endpoint: String,
    device_authorization_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
}

/// Tokens as the provider grants them (RFC 6749, 5.1).
#[derive(Debug, Deserialize)]
pub(super) struct Grant {
    pub(super) access_token: Secret,
    pub(super) refresh_token: Option<Secret>,
    expires_in: Option<i64>,
}

impl Grant {
    /// Returns when the access token ends, if the provider says it.
    pub(super) fn expires_at(&self, granted: DateTime<Utc>) -> Option<DateTime<Utc>> {
        granted.checked_add_signed(TimeDelta::try_seconds(self.expires_in?)?)
    }
}

/// The provider's refusal (RFC 6749, 5.2).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Refusal {
    pub(super) error: String,
    error_description: Option<String>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&clean::line(&self.error))?;
        match &self.error_description {
            Some(description) => write!(f, ": {}", clean::line(description)),
            None => Ok(()),
        }
    }
}

/// The response of an endpoint.
pub(super) type Answered<T> = Result<T, Refusal>;

impl Issuer {
    /// Reads the provider's metadata.
    ///
    /// # Errors
    /// The provider can't be reached, it has no such metadata, or it would be called without TLS.
    pub(super) async fn discover(url: &str, client_id: &str, trust: &Trust) -> Result<Self, Error> {
        let action = format!("asking {url} how to log in");
        let http = transport::client(&private(url)?, &trust.without_certificate())?;
        let request = http.get(format!("{}/.well-known/openid-configuration", url.trim_end_matches('/')));
        let (status, body) = send(&action, request).await?;
        if !status.is_success() {
            return Err(Error::Broken { action, cause: format!("HTTP {}", status.as_u16()) });
        }
        let endpoints: Endpoints = document::read(&action, &body)?;
        // Otherwise another provider's tokens could be obtained in this one's name (RFC 8414, 3.3).
        if endpoints.issuer.trim_end_matches('/') != url.trim_end_matches('/') {
            return Err(Error::Here(format!("{action}: it says that it is {}", endpoints.issuer)));
        }
        for endpoint in [Some(&endpoints.token_endpoint), endpoints.device_authorization_endpoint.as_ref()] {
            endpoint.map(|endpoint| private(endpoint)).transpose()?;
        }
        Ok(Self { url: url.to_owned(), client_id: client_id.to_owned(), endpoints, http })
    }

    /// Exchanges a refresh token for new tokens (RFC 6749, 6).
    ///
    /// # Errors
    /// The provider can't be reached, or doesn't answer as one.
    pub(super) async fn refresh(&self, token: &SecretString) -> Result<Answered<Grant>, Error> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", token.expose_secret())];
        self.post("renewing the login", &self.endpoints.token_endpoint, &form).await
    }

    /// Revokes a token (RFC 7009).
    ///
    /// # Errors
    /// The provider can't be reached, or doesn't revoke tokens.
    pub(super) async fn revoke(&self, token: &SecretString, kind: &str) -> Result<(), Error> {
        let action = format!("revoking the {kind} at {}", self.url);
        let Some(endpoint) = &self.endpoints.revocation_endpoint else {
            return Err(Error::Here(format!("{action}: it has no endpoint for it")));
        };
        private(endpoint)?;
        let form = [("token", token.expose_secret()), ("token_type_hint", kind)];
        let (status, _) = send(&action, self.form(endpoint, &form)).await?;
        match status.is_success() {
            true => Ok(()),
            false => Err(Error::Broken { action, cause: format!("HTTP {}", status.as_u16()) }),
        }
    }

    fn form(&self, endpoint: &str, form: &[(&str, &str)]) -> RequestBuilder {
        let mut body = Serializer::new(String::new());
        body.extend_pairs(form).append_pair("client_id", &self.client_id);
        self.http
            .post(endpoint)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(body.finish())
    }

    async fn post<T: DeserializeOwned>(
        &self,
        what: &str,
        endpoint: &str,
        form: &[(&str, &str)],
    ) -> Result<Answered<T>, Error> {
        let action = format!("{what} at {}", self.url);
        let (status, body) = send(&action, self.form(endpoint, form)).await?;
        if status.is_success() {
            return document::read(&action, &body).map(Ok);
        }
        match serde_json::from_slice(&body) {
            Ok(refusal) if status.is_client_error() => Ok(Err(refusal)),
            _ => Err(Error::Broken { action, cause: format!("HTTP {}", status.as_u16()) }),
        }
    }
}

/// Sends a request and reads the whole response.
async fn send(action: &str, request: RequestBuilder) -> Result<(StatusCode, Bytes), Error> {
    let broken = |cause: String| Error::Broken { action: action.to_owned(), cause };
    let answer = async {
        let response = request.send().await?;
        Ok::<_, reqwest::Error>((response.status(), response.bytes().await?))
    };
    match timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(|error| broken(root(&error))),
        Err(_) => Err(broken(format!("no response within {} seconds", PATIENCE.as_secs()))),
    }
}

/// Returns the URL of a provider, to which tokens are sent.
///
/// # Errors
/// It isn't one of https or of this machine.
fn private(url: &str) -> Result<Server, Error> {
    let server: Option<Server> = url.parse().ok().filter(|_| url.contains("://"));
    server.filter(Server::is_private).ok_or_else(|| {
        Error::Here(format!(
            "no token is sent to {url}, because anyone on the way could read it there: expected an https URL"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_over_https_or_to_this_machine() {
        for url in ["https://id.example/realms/a", "http://127.0.0.1:8080/token", "http://localhost/token"] {
            assert!(private(url).is_ok(), "{url}");
        }
        for url in ["http://id.example", "id.example", "ftp://id.example", "https://me@id.example", ""] {
            assert!(private(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_refusal_is_printed_with_its_description() {
        let refusal = |text: &str| serde_json::from_str::<Refusal>(text).unwrap().to_string();
        assert_eq!(refusal(r#"{"error": "invalid_grant"}"#), "invalid_grant");
        let text = r#"{"error": "invalid_grant", "error_description": "it was\nused", "error_uri": "x"}"#;
        assert_eq!(refusal(text), "invalid_grant: it was used");
    }
}
