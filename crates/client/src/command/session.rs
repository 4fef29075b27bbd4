//! `sparkgate session`.

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Outcome, keep};
use crate::{
    api::{Api, Call},
    clean, document,
    error::Error,
    options::{Gateway, ListFormat},
    screen::{self, note},
    table::{Cell, Column, cut, whole},
};

/// Sessions of Spark Connect.
#[derive(Debug, Subcommand)]
pub enum Session {
    /// List sessions, the newest first.
    List(List),
    /// End sessions.
    End(End),
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    gateway: Gateway,
    /// Also list sessions that have ended.
    #[arg(short, long)]
    all: bool,
    /// Output format: a text table, also with more columns (wide), only ids (name), the gateway's JSON unchanged, or the same as YAML.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", help_heading = "Gateway")]
    output: ListFormat,
}

#[derive(Debug, Args)]
pub struct End {
    #[command(flatten)]
    gateway: Gateway,
    /// The ids of the sessions, or the names of live ones.
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
}

/// A session, as far as it is displayed.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) message: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) principal: String,
    pub(crate) shared: bool,
    namespace: String,
    spark_version: String,
    last_used_at: Option<DateTime<Utc>>,
    idle_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum State {
    #[default]
    Opening,
    Ready,
    Ended,
}

#[derive(Deserialize)]
struct Documents {
    items: Vec<Box<RawValue>>,
}

impl Session {
    pub(super) async fn run(self) -> Outcome {
        match self {
            Self::List(list) => list.run().await,
            Self::End(end) => end.run().await,
        }
    }
}

/// Reads a session.
///
/// # Errors
/// Those of the call; a 404 for an unknown id.
pub(crate) async fn look(api: &Api, id: &str) -> Result<Document, Error> {
    let call = Call::get(format!("asking for the session {id}"), &["sessions", id]);
    document::read(call.action(), &api.send(&call).await?.body)
}

const COLUMNS: [Column<'static>; 5] =
    [whole("SESSION"), whole("NAME"), whole("STATE"), whole("PRINCIPAL"), whole("LAST USED")];
/// The columns of a wide list in addition.
const WIDE: [Column<'static>; 5] =
    [whole("SHARED"), whole("NAMESPACE"), whole("SPARK"), whole("IDLE AT"), cut("MESSAGE")];

impl List {
    async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let call = Call::get("listing sessions", &["sessions"]).query_if("all", self.all.then_some(true));
        let answer = api.send(&call).await?;
        if self.output.is_document() {
            self.output.document(&answer.body)?;
            return Ok(0);
        }
        let sessions = documents(&call, &answer.body)?;
        match self.output {
            ListFormat::Name => {
                let ids: String = sessions.iter().map(|one| format!("{}\n", clean::line(&one.id))).collect();
                return screen::text(&ids).map(|()| 0);
            }
            ListFormat::Wide => {
                let rows: Vec<_> = sessions.iter().map(|one| [row(one), wide(one)].concat()).collect();
                screen::table(&[&COLUMNS[..], &WIDE].concat(), &rows)?;
            }
            _ => screen::table(&COLUMNS, &sessions.iter().map(row).collect::<Vec<_>>())?,
        }
        if sessions.is_empty() {
            note("no sessions: `sparkgate connect` opens one");
        }
        Ok(0)
    }
}

impl End {
    /// Ends all sessions, even if some can't be ended. Returns the exit code of the first failure.
    async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let mut failed = None;
        for session in &self.sessions {
            match end(&api, session).await {
                Ok(id) => screen::line(&format!("{} ended", clean::line(&id)))?,
                Err(error) => keep(&mut failed, &error, session),
            }
        }
        Ok(failed.unwrap_or(0))
    }
}

async fn end(api: &Api, session: &str) -> Result<String, Error> {
    let id = if session.starts_with("driver-") { session.to_owned() } else { named(api, session).await? };
    let call = Call::delete(format!("ending the session {id}"), &["sessions", &id]);
    let ended: Document = document::read(call.action(), &api.send(&call).await?.body)?;
    Ok(ended.id)
}

/// Lists live sessions.
///
/// # Errors
/// Those of the call.
pub(crate) async fn live(api: &Api) -> Result<Vec<Document>, Error> {
    let call = Call::get("listing sessions", &["sessions"]);
    documents(&call, &api.send(&call).await?.body)
}

/// Returns the id of the live session with a name.
async fn named(api: &Api, name: &str) -> Result<String, Error> {
    let mut found = live(api).await?.into_iter().filter(|session| session.name == name);
    match (found.next(), found.next()) {
        (Some(session), None) => Ok(session.id),
        (Some(_), Some(_)) => Err(Error::Here(format!("several sessions have the name {name}: give an id"))),
        (None, _) => Err(Error::Unknown(format!("no live session has the name {name}"))),
    }
}

fn documents(call: &Call, body: &[u8]) -> Result<Vec<Document>, Error> {
    let Documents { items } = document::read(call.action(), body)?;
    items.iter().map(|item| document::read(call.action(), item.get().as_bytes())).collect()
}

fn row(session: &Document) -> Vec<Cell> {
    vec![
        Cell::new(&session.id),
        Cell::new(&session.name),
        Cell::new(&format!("{:?}", session.state).to_uppercase()),
        Cell::new(&session.principal),
        Cell::new(&time(session.last_used_at)),
    ]
}

fn wide(session: &Document) -> Vec<Cell> {
    vec![
        Cell::new(if session.shared { "yes" } else { "no" }),
        Cell::new(&session.namespace),
        Cell::new(&session.spark_version),
        Cell::new(&time(session.idle_at)),
        Cell::new(session.message.as_deref().unwrap_or_default()),
    ]
}

fn time(at: Option<DateTime<Utc>>) -> String {
    at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)).unwrap_or_default()
}
