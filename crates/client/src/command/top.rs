//! `sparkgate top`.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stdout},
    time::Duration,
};

use chrono::{DateTime, Utc};
use clap::Args;
use tokio::time::sleep;

use super::Outcome;
use crate::{
    api::{Api, Call},
    document::{Submission, Why},
    error::Error,
    options::Gateway,
    pages::pages,
    screen, span,
    table::{self, Cell, Column, cut, whole},
};
use sparkgate_submission::State;

/// The states in which a submission has pods.
const WITH_PODS: [State; 4] = [State::Launching, State::Pending, State::Running, State::Killing];
/// The most submissions that the gateway is asked for.
const MOST: usize = 500;
/// What a terminal does before the next table: the cursor goes to its top, and the text below it away (ECMA-48: CUP, ED).
const CLEARED: &str = "\x1b[H\x1b[2J";

#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    gateway: Gateway,
    /// Only submissions of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only submissions in this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// The number of rows.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Seconds between two tables on a terminal.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// Print one table. That is so anyway if standard output is no terminal.
    #[arg(long)]
    once: bool,
}

impl Top {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let is_live = stdout().is_terminal() && !self.once;
        loop {
            let text = self.table(&api).await?;
            screen::text(&format!("{}{text}", if is_live { CLEARED } else { "" }))?;
            if !is_live {
                return Ok(0);
            }
            sleep(Duration::from_secs(self.interval)).await;
        }
    }

    async fn table(&self, api: &Api) -> Result<String, Error> {
        let (mut live, next) = pages::<Submission>(api, None, false, |_| self.call()).await?;
        live.sort_by_key(|one| std::cmp::Reverse(running(one)));
        let (now, more) = (Utc::now(), if next.is_some() { "+" } else { "" });
        let rows: Vec<_> = live.iter().take(self.limit).map(|one| row(one, now)).collect();
        Ok(format!("{}{more}\n{}", summary(&live), table::layout(&COLUMNS, &rows, screen::width())))
    }

    fn call(&self) -> Call {
        let call = Call::get("listing submissions with pods", &["submissions"]).query("limit", MOST);
        let call = WITH_PODS.iter().fold(call, |call, state| call.query("state", state));
        call.query_if("tenant", self.tenant.as_ref()).query_if("queue", self.queue.as_ref())
    }
}

const COLUMNS: [Column<'static>; 8] = [
    whole("ID"),
    cut("NAME"),
    whole("STATE"),
    cut("BY"),
    whole("QUEUE"),
    whole("EXECUTORS"),
    whole("RAN"),
    cut("WAITS FOR"),
];

/// Returns how many of a submission's executors run.
fn running(submission: &Submission) -> i64 {
    submission.executors.get("running").copied().unwrap_or_default()
}

/// Returns one line about all: `RUNNING 12, PENDING 1; 240 executors`.
fn summary(live: &[Submission]) -> String {
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for one in live {
        *states.entry(&one.state).or_default() += 1;
    }
    let states: Vec<String> = states.iter().rev().map(|(state, count)| format!("{state} {count}")).collect();
    let executors: i64 = live.iter().map(running).sum();
    format!("{}; {executors} executors", if states.is_empty() { "nothing runs".to_owned() } else { states.join(", ") })
}

fn row(submission: &Submission, now: DateTime<Utc>) -> Vec<Cell> {
    let pending = submission.executors.get("pending").copied().unwrap_or_default();
    let executors = match pending {
        0 => running(submission).to_string(),
        _ => format!("{} +{pending}", running(submission)),
    };
    let why = submission.waiting.as_ref().map(|Why { message, .. }| message.as_str());
    vec![
        Cell::new(&submission.id),
        Cell::new(&submission.name),
        Cell::styled(&submission.state, screen::style_of(&submission.state)),
        Cell::new(submission.principal_name.as_deref().unwrap_or(&submission.owner)),
        Cell::new(submission.queue.as_deref().unwrap_or_default()),
        Cell::new(&executors),
        Cell::new(&submission.started_at.map(|at| span::between(at, now)).unwrap_or_default()),
        Cell::new(why.unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    #[test]
    fn a_table_says_what_runs_and_with_how_much() {
        let now = DateTime::parse_from_rfc3339("2026-01-02T05:00:00Z").unwrap().to_utc();
        let live: Vec<Submission> = [
            r#"{"id": "driver-1", "name": "Pi", "state": "RUNNING", "owner": "alice", "queue": "day",
                "startedAt": "2026-01-02T04:58:00Z", "executors": {"running": 3, "pending": 2}}"#,
            r#"{"id": "driver-2", "state": "PENDING", "waiting": {"code": "IMAGE_PULL", "message": "no such image"}}"#,
        ]
        .map(|text| document::documented("Submission", text))
        .into();
        assert_eq!(summary(&live), "RUNNING 1, PENDING 1; 3 executors");
        assert_eq!(summary(&[]), "nothing runs; 0 executors");
        let rows: Vec<_> = live.iter().map(|one| row(one, now)).collect();
        assert_eq!(
            anstream::adapter::strip_str(&table::layout(&COLUMNS, &rows, None)).to_string(),
            "ID        NAME  STATE    BY     QUEUE  EXECUTORS  RAN  WAITS FOR\n\
             driver-1  Pi    RUNNING  alice  day    3 +2       2m\n\
             driver-2        PENDING                0               no such image\n"
        );
    }
}
