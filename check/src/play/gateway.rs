//! A gateway, or one replica of it, as its clients reach it.

use std::{fs, path::Path, time::Duration};

use anyhow::Context;
use reqwest::{
    Certificate, Client, Method, RequestBuilder, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect::Policy,
};
use rustls::crypto::ring;
use serde_json::Value;

use crate::history::{Answer, Document, Reply};

/// A call takes at most this long; then its reply counts as lost.
const LIMIT: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct Gateway {
    url: String,
    http: Client,
}

impl Gateway {
    /// Returns the gateway at a URL without `/v1`. The token is sent with each call; the certificates of `ca_file` are trusted besides
    /// the system's.
    ///
    /// # Errors
    /// The file can't be used, or the token has characters that no header has.
    pub fn at(url: &str, token: Option<&str>, ca_file: Option<&Path>) -> anyhow::Result<Self> {
        // Fails if the process has one already.
        let _ = ring::default_provider().install_default();
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim())).context("the token")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut http = Client::builder().default_headers(headers).redirect(Policy::none()).connect_timeout(CONNECT);
        if let Some(file) = ca_file {
            let pem = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
            http = http.tls_certs_merge(Certificate::from_pem_bundle(&pem)?);
        }
        if url.starts_with("http://") {
            http = http.tls_certs_only([]);
        }
        Ok(Self { url: url.trim_end_matches('/').to_owned(), http: http.build()? })
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    /// Returns the request of a create. `query` is empty, or begins with `?`.
    pub(super) fn creating(&self, query: &str, body: String) -> RequestBuilder {
        let request = self.request(Method::POST, &format!("/v1/submissions{query}"));
        request.header(CONTENT_TYPE, "application/json").body(body)
    }

    /// Asks whether the gateway would accept a request, without creating anything.
    ///
    /// # Errors
    /// It wouldn't, for this reason, or it doesn't answer.
    pub async fn would_accept(&self, body: &Value) -> anyhow::Result<()> {
        let request = self.creating("?dryRun=true", body.to_string());
        match self.call(request).await {
            Answer::Reply(reply) if (200..300).contains(&reply.status) => Ok(()),
            Answer::Reply(Reply { status, detail, .. }) => {
                anyhow::bail!("{} refuses it with {status}: {}", self.url, detail.unwrap_or_default())
            }
            Answer::NotSent | Answer::Lost => anyhow::bail!("{} doesn't answer", self.url),
        }
    }

    /// Makes a call and returns what was learned.
    pub(super) async fn call(&self, request: RequestBuilder) -> Answer {
        match request.timeout(LIMIT).send().await {
            Err(error) if error.is_connect() => Answer::NotSent,
            Err(_) => Answer::Lost,
            Ok(response) => read(response).await.map_or(Answer::Lost, Answer::Reply),
        }
    }

    /// Reads a document of any kind; `None` if it can't be read now.
    pub(super) async fn get(&self, path: &str) -> Option<Value> {
        let response = self.request(Method::GET, path).timeout(LIMIT).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        serde_json::from_slice(&response.bytes().await.ok()?).ok()
    }
}

async fn read(response: Response) -> Option<Reply> {
    let (status, retry_after) = (response.status().as_u16(), response.headers().contains_key(RETRY_AFTER));
    let body = response.bytes().await.ok()?;
    // Another program's page has neither.
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let detail = body["detail"].as_str().map(str::to_owned);
    Some(Reply { status, retry_after, detail, document: serde_json::from_value::<Document>(body).ok() })
}
