//! The server of the operator that gets run events about the submissions of all tenants.

use std::{path::PathBuf, sync::Arc};

use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};

use super::{destination::WebhookSettings, send::Sender};
use sparkgate_common::error::error_chain;

/// A server that gets run events about all submissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageServer {
    pub url: String,
    /// The file of the token that it gets as `Authorization: Bearer`.
    pub token_file: Option<PathBuf>,
}

impl LineageServer {
    /// Checks a URL of the operator, which may have any host and port.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(url: &str) -> Result<(), String> {
        WebhookSettings::everywhere().check(url).map(drop)
    }

    /// Asks the server for a response, as a check does. Returns its status, of which only some say that nothing would be taken.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ask(&self) -> Result<StatusCode, String> {
        let token = self.token().await?;
        let sender = Self::sender().map_err(|error| error_chain(&error))?;
        sender.ask(&self.url, token.as_ref()).await
    }

    /// Creates the client for such a server, which may be anywhere.
    pub(super) fn sender() -> reqwest::Result<Sender> {
        Sender::new(Arc::new(WebhookSettings::everywhere()))
    }

    /// Reads the token: it may have been replaced since the last message.
    pub(super) async fn token(&self) -> Result<Option<SecretString>, String> {
        let Some(file) = &self.token_file else { return Ok(None) };
        let name = file.display();
        let text = tokio::fs::read_to_string(file).await;
        let text = SecretString::from(text.map_err(|error| format!("reading its token from {name}: {error}"))?);
        match text.expose_secret().trim() {
            "" => Err(format!("reading its token from {name}: it is empty")),
            token => Ok(Some(token.into())),
        }
    }
}

impl WebhookSettings {
    /// Returns the settings of what an operator names: it may be anywhere.
    fn everywhere() -> Self {
        let networks = ["0.0.0.0/0", "::/0"].into_iter().filter_map(|network| network.parse().ok());
        Self { networks: networks.collect(), http: true, ports: vec![1..=u16::MAX] }
    }
}
