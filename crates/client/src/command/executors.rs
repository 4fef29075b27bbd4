//! `sparkgate executors`.

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::Outcome;
use crate::{
    api::{Api, Call},
    document,
    error::Error,
    named::Named,
    options::Target,
    screen::{self, note},
    span,
    table::{Cell, Column, cut, whole},
};

#[derive(Debug, Args)]
pub struct Executors {
    #[command(flatten)]
    target: Target,
    /// The submission's id, or @latest.
    id: Named,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
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
        let id = self.id.resolved(&api).await?;
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let call =
                Call::get(format!("asking for the executors of {id}"), &["submissions", id.as_str(), "executors"]);
            let call = call.query_if("cursor", cursor.as_ref());
            let page: Page = document::read(call.action(), &api.send(&call).await?.body)?;
            items.extend(page.items);
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        if self.target.json() {
            screen::document(json!({ "items": items }).to_string().as_bytes())?;
            return Ok(0);
        }
        let now = Utc::now();
        let read = |item: &RawValue| document::read("reading an executor", item.get().as_bytes());
        let rows: Result<Vec<_>, Error> = items.iter().map(|item| Ok(row(&read(item)?, now))).collect();
        screen::table(&COLUMNS, &rows?)?;
        if items.is_empty() {
            note("no executors");
        }
        Ok(0)
    }
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
