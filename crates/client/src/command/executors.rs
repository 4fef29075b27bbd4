//! `sparkgate executors`.

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{Outcome, of_submissions::OfSubmissions};
use crate::{
    api::{Api, Call},
    document,
    error::Error,
    named::Named,
    options::Target,
    pages::pages,
    screen::{self, note},
    span,
    table::{Cell, Column, cut, whole},
};
use sparkgate_submission::SubmissionId;

#[derive(Debug, Args)]
pub struct Executors {
    #[command(flatten)]
    target: Target,
    /// The ids of the submissions, or their beginnings; @latest is the newest one.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Executor {
    id: i64,
    attempt: i64,
    state: String,
    pod: String,
    node: Option<String>,
    exit_code: Option<i64>,
    reason: Option<String>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
}

const COLUMNS: [Column<'static>; 8] = [
    whole("ID"),
    whole("ATTEMPT"),
    whole("STATE"),
    whole("EXIT"),
    whole("DURATION"),
    cut("REASON"),
    cut("POD"),
    cut("NODE"),
];

impl Executors {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let now = Utc::now();
        let mut table = OfSubmissions::new(&COLUMNS, self.ids.len());
        for id in Named::all_resolved(&self.ids, &api).await? {
            let items = executors(&api, &id).await?;
            if self.target.is_document() {
                self.target.document(json!({ "items": items }).to_string().as_bytes())?;
                continue;
            }
            for item in items {
                table.add(&id, row(&document::read("reading an executor", item.get().as_bytes())?, now));
            }
        }
        if !self.target.is_document() {
            table.print()?;
            if table.is_empty() {
                note("no executors");
            }
        }
        Ok(0)
    }
}

/// Reads the executors of a submission, from all pages.
async fn executors(api: &Api, id: &SubmissionId) -> Result<Vec<Box<RawValue>>, Error> {
    let call = Call::get(format!("asking for the executors of {id}"), &["submissions", id.as_str(), "executors"]);
    let (items, _) = pages(api, None, true, |cursor| call.clone().query_if("cursor", cursor)).await?;
    Ok(items)
}

fn row(executor: &Executor, now: DateTime<Utc>) -> Vec<Cell> {
    let ran = executor.started_at.map(|at| span::between(at, executor.finished_at.unwrap_or(now)));
    vec![
        Cell::new(&executor.id.to_string()),
        Cell::new(&executor.attempt.to_string()),
        Cell::styled(&executor.state, screen::style_of(&executor.state)),
        Cell::new(&executor.exit_code.map(|code| code.to_string()).unwrap_or_default()),
        Cell::new(&ran.unwrap_or_default()),
        Cell::new(executor.reason.as_deref().unwrap_or_default()),
        Cell::new(&executor.pod),
        Cell::new(executor.node.as_deref().unwrap_or_default()),
    ]
}
