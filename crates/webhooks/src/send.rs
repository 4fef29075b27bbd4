//! Sends one message to a receiver, whom nothing is believed of but the status of its response.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use reqwest::{Client, StatusCode, header, redirect::Policy};
use rustls::crypto::ring;
use secrecy::{ExposeSecret, SecretString};

use super::{
    destination::{NoAddress, Resolver, WebhookSettings},
    message::Message,
    secrets::Secrets,
};
use sparkgate_common::error::error_chain;

/// How long a receiver may take to be connected to, and to answer.
const CONNECT: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(15);
/// How much of a response is read, so that its connection can be used again, and for how long.
const READ: usize = 16 << 10;
const READ_LIMIT: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(30);
/// The longest pause that a receiver may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// The HTTP client of webhooks.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    client: Client,
    settings: Arc<WebhookSettings>,
}

/// A try that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) status: Option<u16>,
    pub(super) reason: String,
    /// How long the receiver wants to be left alone.
    pub(super) pause: Option<Duration>,
}

impl Failed {
    fn because(reason: impl Into<String>) -> Self {
        Self { status: None, reason: reason.into(), pause: None }
    }

    /// Returns whether the receiver wants no more messages.
    pub(super) fn is_final(&self) -> bool {
        self.status == Some(StatusCode::GONE.as_u16())
    }
}

impl Sender {
    /// Creates the client. It follows no redirect and uses no proxy, either of which could lead it elsewhere.
    ///
    /// # Errors
    /// The certificates of this machine can't be read.
    pub(super) fn new(settings: Arc<WebhookSettings>) -> reqwest::Result<Self> {
        // Fails if the process has one already.
        let _ = ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("sparkgate/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Resolver(settings.clone()))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .https_only(!settings.http)
            .connect_timeout(CONNECT)
            .timeout(LIMIT)
            .pool_idle_timeout(IDLE)
            .build()?;
        Ok(Self { client, settings })
    }

    /// Sends a message, and returns the status of the receiver's response if it is a success.
    ///
    /// # Errors
    /// [`Failed`]: nothing is known of what the receiver did.
    pub(super) async fn send(
        &self,
        url: &str,
        message: &Message,
        secrets: &Secrets,
        with_previous: bool,
    ) -> Result<u16, Failed> {
        let url = self.settings.check(url).map_err(Failed::because)?;
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let timestamp = i64::try_from(timestamp).unwrap_or_default();
        let signatures = secrets.signatures(&message.id, timestamp, message.body.as_bytes(), with_previous);
        let mut request = self
            .client
            .post(url)
            .header(header::CONTENT_TYPE, message.content_type)
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", timestamp)
            .body(message.body.clone());
        if let Some(signatures) = signatures {
            request = request.header("webhook-signature", signatures);
        }
        if let Some(token) = secrets.bearer_token() {
            request = request.bearer_auth(token);
        }
        let mut response = request.send().await.map_err(|error| Failed::because(reason_of(&error)))?;
        let status = response.status();
        let pause = response.headers().get(header::RETRY_AFTER).and_then(|text| text.to_str().ok()?.parse().ok());
        let rest = async {
            let mut read = 0;
            while read < READ
                && let Ok(Some(chunk)) = response.chunk().await
            {
                read += chunk.len();
            }
        };
        // A longer body costs its receiver the connection.
        let _ = tokio::time::timeout(READ_LIMIT, rest).await;
        match status.is_success() {
            true => Ok(status.as_u16()),
            false => Err(Failed {
                status: Some(status.as_u16()),
                reason: format!("the receiver answered {status}"),
                pause: pause.map(Duration::from_secs).map(|pause| pause.min(LONGEST_PAUSE)),
            }),
        }
    }

    /// Asks a URL for a response that changes nothing, and returns its status.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn ask(&self, url: &str, token: Option<&SecretString>) -> Result<StatusCode, String> {
        let mut request = self.client.get(self.settings.check(url)?);
        if let Some(token) = token {
            request = request.bearer_auth(token.expose_secret());
        }
        request.send().await.map(|response| response.status()).map_err(|error| reason_of(&error))
    }
}

/// Returns why there is no response, without addresses.
fn reason_of(error: &reqwest::Error) -> String {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    if chain.into_iter().any(|cause| cause.is::<NoAddress>()) {
        return NoAddress.to_string();
    }
    if error.is_timeout() {
        return format!("no answer within {} s", LIMIT.as_secs());
    }
    tracing::debug!("sending a webhook failed: {}", error_chain(error));
    if error.is_connect() {
        return "no connection, or no valid certificate".to_owned();
    }
    "the connection broke off".to_owned()
}
