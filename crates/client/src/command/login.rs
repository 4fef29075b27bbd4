//! `sparkgate login`.

use std::io::{IsTerminal, stderr};

use chrono::{SecondsFormat, Utc};
use clap::Args;
use serde::Deserialize;

use super::Outcome;
use crate::{
    api::{Api, Call},
    browser,
    connection::Connection,
    credentials::{self, Login as Stored},
    document,
    error::Error,
    oidc::{Issuer, device::Device},
    options::Gateway,
    paths::Paths,
    screen::note,
};

#[derive(Debug, Args)]
pub struct Login {
    #[command(flatten)]
    gateway: Gateway,
    /// The provider to log in at, by its name or its URL. Needed if the gateway trusts several.
    #[arg(long, value_name = "NAME")]
    issuer: Option<String>,
    /// Only print the URL to open; start no browser.
    #[arg(long)]
    no_browser: bool,
}

/// The response of `GET /v1/login`.
#[derive(Deserialize)]
struct Offered {
    issuers: Vec<Provider>,
}

/// A provider whose tokens the gateway accepts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provider {
    name: String,
    issuer: String,
    client_id: String,
}

impl Login {
    pub(super) async fn run(self) -> Outcome {
        let connection = Connection::of(&self.gateway)?;
        let server = &connection.server;
        let Some(chosen) = &connection.context else {
            return Err(Error::Here(format!(
                "a login is stored in a context, and {server} is not the URL of the current one: create one with \
                 `sparkgate context set NAME --server {server}`, and run `sparkgate login --context NAME`"
            )));
        };
        if !server.is_private() {
            return Err(Error::Here(format!(
                "no token would be sent to {server}, because anyone on the way could read it there: use an https URL"
            )));
        }
        let provider = self.choose(offered(&connection).await?)?;
        let issuer = Issuer::discover(&provider.issuer, &provider.client_id, &connection.trust).await?;
        let device = issuer.device().await?;
        self.invite(&device);
        let grant = issuer.granted(&device).await?;
        let mut login = Stored {
            server: server.clone(),
            issuer: provider.issuer,
            client_id: provider.client_id,
            access_token: grant.access_token.clone(),
            refresh_token: None,
            expires_at: None,
        };
        login.update(grant, Utc::now());
        let end = login.expires_at.filter(|_| login.refresh_token.is_none());
        credentials::store(&Paths::required()?, &chosen.name, login)?;
        let end = end.map(|end| format!(" until {}", end.to_rfc3339_opts(SecondsFormat::Secs, true)));
        note(&format!("logged in to {server} (context `{}`){}", chosen.name, end.unwrap_or_default()));
        if self.gateway.token.is_some() {
            note("another token precedes the login: that of the command line or of SPARKGATE_TOKEN");
        }
        Ok(0)
    }

    /// Returns the provider that the user names, or the only one.
    fn choose(&self, offered: Vec<Provider>) -> Result<Provider, Error> {
        let names = offered.iter().map(|it| format!("{} ({})", it.name, it.issuer)).collect::<Vec<_>>().join(", ");
        let count = offered.len();
        let asked = |it: &Provider| match &self.issuer {
            Some(asked) => it.name == *asked || it.issuer.trim_end_matches('/') == asked.trim_end_matches('/'),
            None => count == 1,
        };
        offered.into_iter().find(asked).ok_or_else(|| {
            Error::Here(match (&self.issuer, count) {
                (_, 0) => NO_LOGIN.to_owned(),
                (Some(asked), _) => format!("the gateway doesn't trust the provider {asked}, but {names}"),
                (None, _) => format!("the gateway trusts several providers: choose one with --issuer: {names}"),
            })
        })
    }

    /// Asks the user to confirm the code.
    fn invite(&self, device: &Device) {
        let code = &device.user_code;
        match &device.verification_uri_complete {
            Some(uri) => note(&format!("Open {uri} in a browser, and confirm the code {code}.")),
            None => note(&format!("Open {} in a browser, and enter the code {code}.", device.verification_uri)),
        }
        let uri = device.verification_uri_complete.as_ref().unwrap_or(&device.verification_uri);
        // A provider names a page, never a program or an option.
        let is_page = uri.starts_with("https://") || uri.starts_with("http://");
        if !self.no_browser && is_page && stderr().is_terminal() {
            browser::open(uri);
        }
    }
}

const NO_LOGIN: &str =
    "this gateway offers no login: use a token instead, with SPARKGATE_TOKEN, --token-file or `sparkgate context set`";

/// Asks the gateway which providers it trusts.
async fn offered(connection: &Connection) -> Result<Vec<Provider>, Error> {
    let call = Call::get("asking the gateway how to log in", &["login"]);
    match Api::without_token(connection)?.send(&call).await {
        Ok(answer) => Ok(document::read::<Offered>(call.action(), &answer.body)?.issuers),
        Err(Error::Problem(problem)) if problem.status == 404 => Err(Error::Here(NO_LOGIN.to_owned())),
        Err(error) => Err(error),
    }
}
