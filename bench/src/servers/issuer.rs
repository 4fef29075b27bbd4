//! An issuer of tokens, which publishes its key.

use std::{convert::Infallible, net::Ipv4Addr};

use anyhow::Context;
use http_body_util::Full;
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use sparkgate_testing::TokenKey;
use tokio::{net::TcpListener, task::JoinHandle};

/// The issuer. Its server ends when this is dropped.
pub(crate) struct Issuer {
    key: TokenKey,
    url: String,
    server: JoinHandle<()>,
}

impl Issuer {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listening")?;
        let (key, url) = (TokenKey::create("1"), format!("http://{}", listener.local_addr()?));
        let server = tokio::spawn(serve(listener, Bytes::from(key.set().to_string())));
        Ok(Self { key, url, server })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns a token that ends after some hours, with claims as real issuers send them.
    pub(crate) fn token(&self, audience: &str, subject: &str) -> String {
        let now = chrono::Utc::now().timestamp();
        self.key.sign(&json!({
            "iss": self.url, "aud": [audience, "account"], "sub": subject, "iat": now, "exp": now + 12 * 3600,
            "jti": "2a1b6a2c-5a0e-4f1c-9b0e-3a5d3a1f6b7c", "typ": "Bearer", "azp": "scheduler",
            "sid": "0f8a9c0e-6f0b-4b7e-8b7e-0f2f6a3b9d11", "scope": "openid profile email",
            "realm_access": {"roles": ["default-roles-data", "offline_access", "uma_authorization"]},
            "groups": ["data-eng", "staff", "on-call"], "email_verified": true, "preferred_username": subject,
            "name": "A Scheduler", "email": "scheduler@example.org",
        }))
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Answers every request with the key set: the access file names its address.
async fn serve(listener: TcpListener, keys: Bytes) {
    while let Ok((stream, _)) = listener.accept().await {
        let keys = keys.clone();
        tokio::spawn(async move {
            let service = service_fn(move |_| {
                let answer = Response::new(Full::new(keys.clone()));
                async move { Ok::<_, Infallible>(answer) }
            });
            let _ =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
