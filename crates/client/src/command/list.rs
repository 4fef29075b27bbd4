//! `sparkgate list`.

mod watch;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{json, value::RawValue};

use super::{Outcome, label};
use crate::{
    api::{Api, Call},
    clean,
    document::{self, Submission, Why},
    error::Error,
    options::{Gateway, ListFormat},
    pages::pages,
    screen::{self, note},
    span::{self, Moment},
    table::{Cell, Column, Widths, cut, whole},
};
use sparkgate_submission::{State, headline_of_row};
use watch::Watch;

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    gateway: Gateway,
    /// Output format: a text table, also with more columns (wide), only ids (name), the gateway's JSON unchanged, or the same as YAML.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", help_heading = "Gateway")]
    output: ListFormat,
    /// Only submissions in these states, separated by commas.
    #[arg(long, value_name = "STATES", value_delimiter = ',')]
    state: Vec<String>,
    /// Only submissions that failed: in the states FAILED, ERROR and LOST.
    #[arg(long, conflicts_with = "state")]
    failed: bool,
    /// Only submissions with these failure codes, such as `OUT_OF_MEMORY`, separated by commas.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    failure_code: Vec<String>,
    /// Only submissions whose name has this prefix.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// Only submissions whose name has this part, in upper or lower case.
    #[arg(long, value_name = "PART")]
    name_contains: Option<String>,
    /// Only submissions of this caller, such as corp:alice.
    #[arg(long, value_name = "PRINCIPAL")]
    by: Option<String>,
    /// Only submissions of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only submissions of this user.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Only submissions in this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Only submissions in this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only the submission with this id of its client.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Only submissions of this Spark version, or of a line such as 4.1.
    #[arg(long, value_name = "VERSION")]
    spark_version: Option<String>,
    /// Only submissions with this label; may be repeated.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Only submissions created after this time: a time ago such as 2h, or a date such as 2026-01-02 or 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only submissions created before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Maximum number of submissions to list.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// List all matching submissions.
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,
    /// Continue an earlier list with the same filters: its `next`.
    #[arg(long)]
    cursor: Option<String>,
    /// After the list, print each submission again when its state changes, and new ones, until Ctrl-C. Goes on when the gateway
    /// restarts.
    #[arg(short, long, conflicts_with = "cursor")]
    watch: bool,
}

const ACTION: &str = "listing submissions";
const PAGE: u32 = 500;

impl List {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        if self.watch {
            Watch::new(&self, &api).run().await?;
            return Ok(0);
        }
        let now = Utc::now();
        let is_document = self.output.is_document();
        if is_document && !self.all {
            self.output.document(&api.send(&self.call(now, self.cursor.as_deref())).await?.body)?;
            return Ok(0);
        }
        let (items, next) = self.items(&api, now).await?;
        if is_document {
            self.output.document(json!({ "items": items }).to_string().as_bytes())?;
            return Ok(0);
        }
        let submissions: Vec<_> = items.iter().map(|item| Ok((&**item, read(item)?))).collect::<Result<_, Error>>()?;
        self.print_part(&submissions, &mut Widths::default())?;
        match next {
            Some(_) if submissions.is_empty() => note("none of the newest matches: use --all to look through all"),
            Some(_) => note("there are more: use --all or a larger --limit"),
            None if submissions.is_empty() => note("no submissions"),
            None => {}
        }
        Ok(0)
    }

    /// Reads the first page, or all pages. Returns the submissions, and the cursor of the next page.
    async fn items(&self, api: &Api, now: DateTime<Utc>) -> Result<(Vec<Box<RawValue>>, Option<String>), Error> {
        pages(api, self.cursor.clone(), self.all, |cursor| self.call(now, cursor)).await
    }

    /// Prints submissions, each as a document or all as a part of a table.
    fn print_part(&self, submissions: &[(&RawValue, Submission)], before: &mut Widths) -> Result<(), Error> {
        let now = Utc::now();
        match self.output {
            ListFormat::Json | ListFormat::Yaml => {
                submissions.iter().try_for_each(|(item, _)| self.output.document(item.get().as_bytes()))
            }
            ListFormat::Name => {
                let lines: String = submissions.iter().map(|(_, one)| format!("{}\n", clean::line(&one.id))).collect();
                screen::text(&lines)
            }
            ListFormat::Wide => {
                let rows: Vec<_> = submissions.iter().map(|(_, one)| [row(one, now), wide(one)].concat()).collect();
                screen::part(&[&COLUMNS[..], &WIDE].concat(), &rows, before)
            }
            ListFormat::Table => {
                let rows: Vec<_> = submissions.iter().map(|(_, one)| row(one, now)).collect();
                screen::part(&COLUMNS, &rows, before)
            }
        }
    }

    fn call(&self, now: DateTime<Utc>, cursor: Option<&str>) -> Call {
        let mut call = Call::get(ACTION, &["submissions"]).query("limit", if self.all { PAGE } else { self.limit });
        let failed = State::FAILED.iter().map(|state| state.as_str().to_owned()).filter(|_| self.failed);
        for state in self.state.iter().map(|state| state.to_ascii_uppercase()).chain(failed) {
            call = call.query("state", state);
        }
        for code in &self.failure_code {
            call = call.query("failureCode", code.to_ascii_uppercase());
        }
        for (key, value) in &self.labels {
            call = call.query("label", format_args!("{key}={value}"));
        }
        call.query_if("name", self.name.as_ref())
            .query_if("nameContains", self.name_contains.as_ref())
            .query_if("principal", self.by.as_ref())
            .query_if("tenant", self.tenant.as_ref())
            .query_if("owner", self.owner.as_ref())
            .query_if("namespace", self.namespace.as_ref())
            .query_if("queue", self.queue.as_ref())
            .query_if("clientId", self.client_id.as_ref())
            .query_if("sparkVersion", self.spark_version.as_ref())
            .query_if("createdAfter", self.since.map(|time| time.rfc3339(now)))
            .query_if("createdBefore", self.until.map(|time| time.rfc3339(now)))
            .query_if("cursor", cursor)
    }
}

fn read(item: &RawValue) -> Result<Submission, Error> {
    document::read(ACTION, item.get().as_bytes())
}

/// The longest reason in a list that isn't wide, in characters.
const REASON: usize = 100;

const COLUMNS: [Column<'static>; 7] =
    [whole("ID"), cut("NAME"), whole("STATE"), cut("OWNER"), whole("AGE"), whole("DURATION"), cut("REASON")];

/// The columns of a wide list in addition.
const WIDE: [Column<'static>; 9] = [
    whole("TENANT"),
    cut("BY"),
    whole("NAMESPACE"),
    whole("SPARK"),
    whole("ATTEMPT"),
    cut("NODE"),
    whole("QUEUE"),
    cut("LABELS"),
    cut("WAITS FOR"),
];

fn wide(submission: &Submission) -> Vec<Cell> {
    let labels: Vec<String> = submission.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    vec![
        Cell::new(&submission.tenant),
        Cell::new(submission.principal_name.as_deref().unwrap_or(&submission.principal)),
        Cell::new(&submission.namespace),
        Cell::new(submission.spark_version.as_deref().unwrap_or_default()),
        Cell::new(&submission.attempt.to_string()),
        Cell::new(submission.driver.node.as_deref().unwrap_or_default()),
        Cell::new(submission.queue.as_deref().unwrap_or_default()),
        Cell::new(&labels.join(",")),
        Cell::new(submission.waiting.as_ref().map(|why| why.message.as_str()).unwrap_or_default()),
    ]
}

/// Returns why a submission failed, or what keeps it from running, in one line: `APPLICATION_ERROR: ValueError: no such column`.
fn reason(submission: &Submission) -> String {
    let is_wrong = |why: &&Why| !matches!(&*why.code, "QUEUED" | "HELD" | "STARTING");
    let Some(why) = submission.failure.as_ref().or_else(|| submission.waiting.as_ref().filter(is_wrong)) else {
        return String::new();
    };
    let cause = headline_of_row(&why.message);
    let text = if cause.is_empty() { why.code.clone() } else { format!("{}: {cause}", why.code) };
    match text.char_indices().nth(REASON) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}

fn row(submission: &Submission, now: DateTime<Utc>) -> Vec<Cell> {
    let held = if submission.is_held() { " (held)" } else { "" };
    let state = format!("{}{held}", submission.state);
    let age = submission.created_at.map(|at| span::between(at, now));
    let ran = submission.started_at.map(|at| span::between(at, submission.finished_at.unwrap_or(now)));
    vec![
        Cell::new(&submission.id),
        Cell::new(&submission.name),
        Cell::styled(&state, screen::style_of(&submission.state)),
        Cell::new(&submission.owner),
        Cell::new(&age.unwrap_or_default()),
        Cell::new(&ran.unwrap_or_default()),
        Cell::new(&reason(submission)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn row_shows_age_and_duration() {
        let now = DateTime::parse_from_rfc3339("2026-01-02T05:00:00Z").unwrap().to_utc();
        let of = |text: &str| row(&document::documented("Submission", text), now);
        let rows = [
            of(r#"{"id": "driver-1", "name": "Pi", "state": "FINISHED", "owner": "alice", "createdAt":
                "2026-01-02T03:00:00.000Z", "startedAt": "2026-01-02T03:00:10Z", "finishedAt": "2026-01-02T03:01:22Z"}"#),
            of(r#"{"id": "driver-2", "state": "RUNNING", "createdAt": "2026-01-02T04:58:00Z", "startedAt":
                "2026-01-02T04:59:00Z"}"#),
            of(r#"{"id": "driver-3", "state": "QUEUED", "createdAt": "2026-01-02T05:00:01Z"}"#),
            of(r#"{"id": "driver-4", "state": "QUEUED", "waiting": {"code": "HELD", "message": "held by corp:ann"}}"#),
            of(r#"{"id": "driver-5", "state": "FAILED", "failure": {"code": "APPLICATION_ERROR", "message":
                "the driver exited with code 1 (Error): ValueError: x"}}"#),
        ];
        assert_eq!(
            anstream::adapter::strip_str(&table::layout(&COLUMNS, &rows, None)).to_string(),
            "ID        NAME  STATE          OWNER  AGE  DURATION  REASON\n\
             driver-1  Pi    FINISHED       alice  2h   1m 12s\n\
             driver-2        RUNNING               2m   1m\ndriver-3        QUEUED                0s\n\
             driver-4        QUEUED (held)\n\
             driver-5        FAILED                               APPLICATION_ERROR: ValueError: x\n"
        );
    }
}
