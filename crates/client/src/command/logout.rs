//! `sparkgate logout`.

use clap::Args;

use super::Outcome;
use crate::{
    connection::{Connection, Trust},
    credentials::{self, Login},
    error::Error,
    oidc::Issuer,
    options::Gateway,
    paths::Paths,
    screen::note,
};

#[derive(Debug, Args)]
pub struct Logout {
    #[command(flatten)]
    gateway: Gateway,
}

impl Logout {
    /// Deletes the login, and revokes its tokens if the provider can.
    pub(super) async fn run(self) -> Outcome {
        let connection = Connection::of(&self.gateway)?;
        let Some(chosen) = &connection.context else {
            return Err(Error::Here(format!(
                "a login is of a context, and {} is not the URL of the current one: name it with --context",
                connection.server
            )));
        };
        let name = &chosen.name;
        let Some(login) = credentials::delete(&Paths::required()?, name)? else {
            note(&format!("there is no login of the context `{name}`"));
            return Ok(0);
        };
        note(&format!("logged out of the context `{name}`"));
        if let Err(error) = revoke(&login, &connection.trust).await {
            note(&format!("{error}\n  the tokens are deleted here, but valid until they end"));
        }
        Ok(0)
    }
}

async fn revoke(login: &Login, trust: &Trust) -> Result<(), Error> {
    let issuer = Issuer::discover(&login.issuer, &login.client_id, trust).await?;
    // Most providers revoke the access tokens with the refresh token that they are from (RFC 7009, 2.1).
    if let Some(token) = &login.refresh_token {
        issuer.revoke(token.text(), "refresh_token").await?;
    }
    issuer.revoke(login.access_token.text(), "access_token").await
}
