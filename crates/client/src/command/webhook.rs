//! `sparkgate webhook`.

mod create;
mod deliveries;
mod name;

use std::fmt::Write;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Outcome, keep};
use crate::{
    api::{Api, Call},
    clean, document,
    error::Error,
    fields::Fields,
    named::Named,
    options::{Gateway, ListFormat, Target},
    screen::{self, note},
    span,
    table::{Cell, Column, cut, whole},
};
use name::WebhookName;

/// Webhooks: URLs that the gateway sends state changes to.
#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// Create a webhook and print the secret that signs its messages. It can't be shown again.
    Create(Box<create::Create>),
    /// List webhooks, newest first.
    List(List),
    /// Show webhooks, without their secrets.
    Show(Show),
    /// Delete webhooks. What is queued for them is not sent.
    #[command(visible_alias = "delete")]
    Rm(Rm),
    /// Replace the secret of a webhook and print the new one. For a day, messages are signed with both.
    Rotate(Rotate),
    /// List what was sent to a webhook, is to be sent, or was given up.
    Deliveries(deliveries::Deliveries),
    /// Send deliveries of a webhook again: all that were given up, or those that you name.
    Replay(deliveries::Replay),
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    gateway: Gateway,
    /// Output format: a text table, also with more columns (wide), only ids (name), the gateway's JSON unchanged, or the same as YAML.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", help_heading = "Gateway")]
    output: ListFormat,
    /// The webhooks that the request of this submission named, instead of the others.
    #[arg(long, value_name = "ID")]
    submission: Option<Named>,
}

#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    target: Target,
    /// The ids of the webhooks, or their beginnings.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<WebhookName>,
}

#[derive(Debug, Args)]
pub struct Rm {
    #[command(flatten)]
    gateway: Gateway,
    /// The ids of the webhooks, or their beginnings.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<WebhookName>,
}

#[derive(Debug, Args)]
pub struct Rotate {
    #[command(flatten)]
    target: Target,
    /// The id of the webhook, or its beginning.
    #[arg(value_name = "ID")]
    id: WebhookName,
}

/// A webhook, as far as it is displayed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Document {
    id: String,
    tenant: String,
    created_by: String,
    url: String,
    format: String,
    submissions: String,
    submission_id: Option<String>,
    filter: Filter,
    created_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    previous_secret_until: Option<DateTime<Utc>>,
}

/// Which changes are sent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filter {
    states: Vec<String>,
    name: Option<String>,
    owner: Option<String>,
    namespace: Option<String>,
    labels: std::collections::BTreeMap<String, String>,
}

/// A webhook with its secret: the response to a creation or a rotation.
#[derive(Deserialize)]
struct WithSecret {
    #[serde(flatten)]
    document: Document,
    secret: String,
}

#[derive(Deserialize)]
struct Documents {
    items: Vec<Box<RawValue>>,
}

impl Webhook {
    pub(super) async fn run(self) -> Outcome {
        match self {
            Self::Create(create) => create.run().await,
            Self::List(list) => list.run().await,
            Self::Show(show) => show.run().await,
            Self::Rm(rm) => rm.run().await,
            Self::Rotate(rotate) => rotate.run().await,
            Self::Deliveries(deliveries) => deliveries.run().await,
            Self::Replay(replay) => replay.run().await,
        }
    }
}

const COLUMNS: [Column<'static>; 7] =
    [whole("ID"), cut("TENANT"), whole("SUBMISSIONS"), whole("FORMAT"), cut("FILTER"), whole("AGE"), cut("URL")];

/// The columns of a wide list in addition.
const WIDE: [Column<'static>; 2] = [cut("CREATED BY"), whole("OLD SECRET")];

impl List {
    async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let submission = match &self.submission {
            Some(named) => Some(named.resolved(&api).await?),
            None => None,
        };
        let call = Call::get("listing webhooks", &["webhooks"]).query_if("submission", submission);
        let answer = api.send(&call).await?;
        if self.output.is_document() {
            self.output.document(&answer.body)?;
            return Ok(0);
        }
        let Documents { items } = document::read(call.action(), &answer.body)?;
        let webhooks = items.iter().map(|item| document::read(call.action(), item.get().as_bytes()));
        let webhooks: Vec<Document> = webhooks.collect::<Result<_, Error>>()?;
        let now = Utc::now();
        match self.output {
            ListFormat::Name => {
                let ids: String = webhooks.iter().map(|one| format!("{}\n", clean::line(&one.id))).collect();
                return screen::text(&ids).map(|()| 0);
            }
            ListFormat::Wide => {
                let rows: Vec<_> = webhooks.iter().map(|one| [row(one, now), wide(one, now)].concat()).collect();
                screen::table(&[&COLUMNS[..], &WIDE].concat(), &rows)?;
            }
            _ => screen::table(&COLUMNS, &webhooks.iter().map(|one| row(one, now)).collect::<Vec<_>>())?,
        }
        if webhooks.is_empty() {
            note("no webhooks");
        }
        Ok(0)
    }
}

fn row(webhook: &Document, now: DateTime<Utc>) -> Vec<Cell> {
    vec![
        Cell::new(&webhook.id),
        Cell::new(&webhook.tenant),
        Cell::new(webhook.submission_id.as_deref().unwrap_or(&webhook.submissions)),
        Cell::new(&webhook.format),
        Cell::new(&webhook.filter.summary()),
        Cell::new(&webhook.created_at.map(|at| span::between(at, now)).unwrap_or_default()),
        Cell::new(&webhook.url),
    ]
}

fn wide(webhook: &Document, now: DateTime<Utc>) -> Vec<Cell> {
    let until = webhook.previous_secret_until.filter(|until| *until > now);
    let old = until.map(|until| format!("for {}", span::between(now, until)));
    vec![Cell::new(&webhook.created_by), Cell::new(&old.unwrap_or_default())]
}

impl Filter {
    /// Returns all criteria in one line.
    fn summary(&self) -> String {
        let mut words = Vec::new();
        if !self.states.is_empty() {
            words.push(self.states.join(","));
        }
        words.extend(self.name.iter().map(|name| format!("name={name}*")));
        words.extend(self.owner.iter().map(|owner| format!("owner={owner}")));
        words.extend(self.namespace.iter().map(|namespace| format!("namespace={namespace}")));
        words.extend(self.labels());
        words.join(" ")
    }

    fn labels(&self) -> impl Iterator<Item = String> {
        self.labels.iter().map(|(key, value)| format!("{key}={value}"))
    }
}

impl Show {
    async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let mut text = String::new();
        for id in WebhookName::all_resolved(&self.ids, &api).await? {
            let call = Call::get(format!("asking for the webhook {id}"), &["webhooks", &id]);
            let answer = api.send(&call).await?;
            if self.target.is_document() {
                self.target.document(&answer.body)?;
                continue;
            }
            let separator = if text.is_empty() { "" } else { "\n" };
            let _ = write!(text, "{separator}{}", describe(&document::read(call.action(), &answer.body)?, Utc::now()));
        }
        screen::text(&text)?;
        Ok(0)
    }
}

fn describe(webhook: &Document, now: DateTime<Utc>) -> String {
    let at = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let Document { filter, .. } = webhook;
    let submissions = match (&webhook.submission_id, webhook.submissions.as_str()) {
        (Some(id), _) => id.clone(),
        (None, "own") => format!("those of {}", webhook.created_by),
        (None, "tenant") => "all of the tenant".to_owned(),
        (None, "installation") => "all of the installation".to_owned(),
        (None, other) => other.to_owned(),
    };
    let mut fields = Fields::default();
    fields.add("ID", webhook.id.clone());
    fields.add("URL", webhook.url.clone());
    fields.add("Format", webhook.format.clone());
    fields.add("Tenant", webhook.tenant.clone());
    fields.add("Submissions", submissions);
    fields.add("States", filter.states.join(", "));
    fields.add("Name", filter.name.as_ref().map(|name| format!("begins with {name}")));
    fields.add("Owner", filter.owner.clone());
    fields.add("Namespace", filter.namespace.clone());
    fields.add("Labels", filter.labels().collect::<Vec<_>>().join(", "));
    fields.add("Created by", webhook.created_by.clone());
    fields.add("Created", webhook.created_at.map(at));
    fields.add("Ends", webhook.expires_at.map(at));
    let old = webhook.previous_secret_until.filter(|until| *until > now);
    fields.add("Old secret", old.map(|until| format!("signs, too, until {}", at(until))));
    fields.finish()
}

impl Rm {
    /// Deletes all webhooks, even if some of the deletions fail. Returns the exit code of the first failure.
    async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let mut failed = None;
        for id in WebhookName::all_resolved(&self.ids, &api).await? {
            match api.send(&Call::delete(format!("deleting the webhook {id}"), &["webhooks", &id])).await {
                Ok(_) => note(&format!("the webhook {id} is deleted")),
                Err(error) => keep(&mut failed, &error, id),
            }
        }
        Ok(failed.unwrap_or(0))
    }
}

impl Rotate {
    /// Prints the secret alone to standard output, for `SECRET=$(sparkgate webhook rotate …)`.
    async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let id = self.id.resolved(&api).await?;
        // A second rotation would replace the secret that receivers still use.
        let call = Call::post(format!("replacing the secret of {id}"), &["webhooks", &id, "rotate"], String::new());
        let answer = api.send(&call.clone().not_repeated()).await.inspect_err(|error| {
            if error.is_passing() {
                note("the secret may be replaced nevertheless: see `OLD SECRET` of `sparkgate webhook list -o wide`");
            }
        })?;
        let WithSecret { document, secret } = document::read(call.action(), &answer.body)?;
        match self.target.is_document() {
            true => self.target.document(&answer.body)?,
            false => screen::line(&clean::line(&secret))?,
        }
        let until = document.previous_secret_until.map(|until| until.to_rfc3339_opts(SecondsFormat::Secs, true));
        let until = until.map(|until| format!("; until {until}, messages are signed with the old one, too"));
        note(&format!(
            "the secret of the webhook {id} is replaced{}. It can't be shown again",
            until.unwrap_or_default()
        ));
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    fn documents() -> [Document; 2] {
        let first = r#"{"id": "wh_6f1c2a9b03d4e5f6", "tenant": "analytics", "createdBy": "corp:alice", "format": "cloudevents",
            "url": "https://hooks.example.org/spark", "submissions": "tenant", "createdAt": "2026-01-02T03:00:00Z",
            "previousSecretUntil": "2026-01-02T05:00:00Z",
            "filter": {"states": ["FINISHED", "FAILED"], "name": "etl-", "labels": {"team": "data"}}}"#;
        let second = r#"{"id": "wh_0000000000000001", "createdBy": "corp:bob", "submissions": "own", "filter": {}}"#;
        [first, second].map(|text| document::documented("Webhook", text))
    }

    fn now() -> DateTime<Utc> {
        DateTime::parse_from_rfc3339("2026-01-02T04:00:00Z").unwrap().to_utc()
    }

    #[test]
    fn row_has_the_filter_in_one_column() {
        let rows = documents().map(|one| [row(&one, now()), wide(&one, now())].concat());
        assert_eq!(
            table::layout(&[&COLUMNS[..], &WIDE].concat(), &rows, None),
            "ID                   TENANT     SUBMISSIONS  FORMAT       FILTER                                AGE  URL                              CREATED BY  OLD SECRET\n\
             wh_6f1c2a9b03d4e5f6  analytics  tenant       cloudevents  FINISHED,FAILED name=etl-* team=data  1h   https://hooks.example.org/spark  corp:alice  for 1h\n\
             wh_0000000000000001             own                                                                                                   corp:bob\n"
        );
    }

    #[test]
    fn description_has_what_is_set() {
        let [first, second] = documents().map(|one| describe(&one, now()));
        for line in ["States:      FINISHED, FAILED\n", "Submissions: all of the tenant\n", "2026-01-02T05:00:00Z\n"] {
            assert!(first.contains(line), "{first}");
        }
        assert_eq!(second, "ID:          wh_0000000000000001\nSubmissions: those of corp:bob\nCreated by:  corp:bob\n");
    }
}
