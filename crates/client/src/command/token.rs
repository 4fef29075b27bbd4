//! `sparkgate token`.

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use super::Outcome;
use crate::{
    api::{Api, Call},
    clean, document,
    error::Error,
    options::{Gateway, Target},
    screen::{self, note},
    span::{self, Span},
    table::{Cell, Column, cut, whole},
};

/// Tokens for programs, which can't log in.
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Create a token and print it. It can't be shown again.
    Create(Create),
    /// List the tokens, without their text.
    List(List),
    /// Revoke a token: from now on, the gateway refuses it.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    target: Target,
    /// A name that says what the token is for.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The tenant that the token is for.
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// The role that the token has in the tenant, such as submitter.
    #[arg(long, value_name = "ROLE")]
    role: String,
    /// The time until the token ends, such as 90d [default: the gateway's].
    #[arg(long, value_name = "TIME")]
    expires: Option<Span>,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub struct Revoke {
    #[command(flatten)]
    gateway: Gateway,
    /// The token's id, as `sparkgate token list` shows it.
    #[arg(value_name = "ID")]
    id: String,
}

/// A token, as far as it is displayed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Document {
    id: String,
    name: String,
    tenant: String,
    role: String,
    created_at: Option<DateTime<Utc>>,
    created_by: String,
    expires_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
}

/// The response to a creation.
#[derive(Deserialize)]
struct Created {
    #[serde(flatten)]
    document: Document,
    token: String,
}

#[derive(Deserialize)]
struct Documents {
    tokens: Vec<Document>,
}

impl Token {
    pub(super) async fn run(self) -> Outcome {
        match self {
            Self::Create(create) => create.run().await,
            Self::List(list) => list.run().await,
            Self::Revoke(revoke) => revoke.run().await,
        }
    }
}

impl Create {
    /// Prints the token alone to standard output, for `TOKEN=$(sparkgate token create …)`.
    async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let mut body = json!({"name": self.name, "tenant": self.tenant, "role": self.role});
        if let Some(expires) = self.expires {
            body["expiresInSeconds"] = expires.seconds().into();
        }
        // A second token would be left over if the reply to the first were lost.
        let call = Call::post("creating a token", &["tokens"], body.to_string()).not_repeated();
        let answer = api.send(&call).await.inspect_err(|error| {
            if error.is_passing() && !matches!(error, Error::NoGateway { .. }) {
                note("the token may exist nevertheless: see `sparkgate token list`, and revoke it");
            }
        })?;
        let Created { document, token } = document::read(call.action(), &answer.body)?;
        match self.target.is_document() {
            true => self.target.document(&answer.body)?,
            false => screen::line(&clean::line(&token))?,
        }
        let end = match document.expires_at {
            Some(end) => format!("it ends at {}", end.to_rfc3339_opts(SecondsFormat::Secs, true)),
            None => "it doesn't end by itself".to_owned(),
        };
        let Document { id, name, tenant, role, .. } = document;
        note(&format!(
            "created the token `{name}` (id {id}) with the role {role} in {tenant}; {end}. It can't be shown again"
        ));
        Ok(0)
    }
}

const COLUMNS: [Column<'static>; 8] = [
    whole("ID"),
    cut("NAME"),
    cut("TENANT"),
    whole("ROLE"),
    cut("CREATED BY"),
    whole("AGE"),
    whole("ENDS"),
    whole("LAST USED"),
];

impl List {
    async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let call = Call::get("listing tokens", &["tokens"]);
        let answer = api.send(&call).await?;
        if self.target.is_document() {
            self.target.document(&answer.body)?;
            return Ok(0);
        }
        let Documents { tokens } = document::read(call.action(), &answer.body)?;
        let now = Utc::now();
        screen::table(&COLUMNS, &tokens.iter().map(|token| row(token, now)).collect::<Vec<_>>())?;
        if tokens.is_empty() {
            note("no tokens");
        }
        Ok(0)
    }
}

fn row(token: &Document, now: DateTime<Utc>) -> Vec<Cell> {
    let ago = |at: Option<DateTime<Utc>>| at.map(|at| format!("{} ago", span::between(at, now)));
    let end = match token.expires_at {
        Some(end) if end <= now => "ended".to_owned(),
        Some(end) => format!("in {}", span::between(now, end)),
        None => "never".to_owned(),
    };
    vec![
        Cell::new(&token.id),
        Cell::new(&token.name),
        Cell::new(&token.tenant),
        Cell::new(&token.role),
        Cell::new(&token.created_by),
        Cell::new(&token.created_at.map(|at| span::between(at, now)).unwrap_or_default()),
        Cell::new(&end),
        Cell::new(&ago(token.last_used_at).unwrap_or_else(|| "never".to_owned())),
    ]
}

impl Revoke {
    async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        api.send(&Call::delete(format!("revoking the token {}", self.id), &["tokens", &self.id])).await?;
        note(&format!("the token {} is revoked", self.id));
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn row_shows_when_a_token_ends_and_was_used() {
        let now = DateTime::parse_from_rfc3339("2026-01-02T04:00:00Z").unwrap().to_utc();
        let of = |text: &str| row(&document::documented("ApiKey", text), now);
        let rows = [
            of(
                r#"{"id": "t1", "name": "airflow", "tenant": "analytics", "role": "submitter", "createdBy": "corp:alice",
                "createdAt": "2026-01-01T04:00:00Z", "expiresAt": "2026-01-12T04:00:00Z",
                "lastUsedAt": "2026-01-02T03:58:00Z"}"#,
            ),
            of(
                r#"{"id": "t2", "name": "old", "tenant": "ops", "role": "viewer", "expiresAt": "2026-01-02T04:00:00Z"}"#,
            ),
            of(r#"{"id": "t3"}"#),
        ];
        assert_eq!(
            table::layout(&COLUMNS, &rows, None),
            "ID  NAME     TENANT     ROLE       CREATED BY  AGE  ENDS    LAST USED\n\
             t1  airflow  analytics  submitter  corp:alice  1d   in 10d  2m ago\n\
             t2  old      ops        viewer                      ended   never\n\
             t3                                                  never   never\n"
        );
    }
}
