//! `sparkgate audit`.

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use clap::builder::styling::{AnsiColor, Style};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::Outcome;
use crate::{
    api::{Api, Call},
    document,
    error::Error,
    follow::{End, reconnecting},
    options::Target,
    screen::{self, note},
    table::{Cell, Column, cut, whole},
};
use sparkgate_submission::SubmissionId;

#[derive(Debug, Args)]
pub struct Audit {
    #[command(flatten)]
    target: Target,
    /// Only entries about this submission.
    #[arg(long, value_name = "ID")]
    submission: Option<SubmissionId>,
    /// Only entries about this tenant.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Start after the entry with this id.
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Print new entries as they are written, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
}

/// A page of the audit log, oldest entries first.
#[derive(Deserialize)]
struct Page {
    entries: Vec<Box<RawValue>>,
    #[serde(default)]
    next: Value,
}

/// A request of a user and its verdict.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    id: Value,
    at: Option<DateTime<Utc>>,
    subject: Option<String>,
    subject_name: Option<String>,
    address: Option<String>,
    action: String,
    tenant: Option<String>,
    submission: Option<String>,
    verdict: String,
    detail: Option<String>,
}

const ACTION: &str = "reading the audit log";
const PAGE: u32 = 500;

impl Audit {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        if self.follow {
            let (mut after, mut is_first) = (self.after.clone(), true);
            reconnecting(async || {
                let (entries, position) = self.read(&api, after.clone()).await?;
                self.tell(&entries, std::mem::take(&mut is_first))?;
                after = position;
                // Further entries may come.
                Ok(End::Cut)
            })
            .await?;
            return Ok(0);
        }
        let (entries, _) = self.read(&api, self.after.clone()).await?;
        if self.target.is_document() {
            self.target.document(json!({ "entries": entries }).to_string().as_bytes())?;
            return Ok(0);
        }
        self.tell(&entries, true)?;
        if entries.is_empty() {
            note("no entries");
        }
        Ok(0)
    }

    /// Reads all entries after a position. Returns them and the position after them.
    async fn read(&self, api: &Api, mut after: Option<String>) -> Result<(Vec<Box<RawValue>>, Option<String>), Error> {
        let mut entries = Vec::new();
        loop {
            let call = Call::get(ACTION, &["audit"])
                .query_if("after", after.as_ref())
                .query("limit", PAGE)
                .query_if("submission", self.submission.as_ref())
                .query_if("tenant", self.tenant.as_ref());
            let page: Page = document::read(ACTION, &api.send(&call).await?.body)?;
            let last = page.entries.last().map(|entry| parsed(entry)).transpose()?;
            let next = word(&page.next);
            let has_more = next.is_some() && last.is_some();
            after = next.or_else(|| word(&last?.id)).or(after);
            entries.extend(page.entries);
            if !has_more {
                return Ok((entries, after));
            }
        }
    }

    fn tell(&self, entries: &[Box<RawValue>], with_titles: bool) -> Result<(), Error> {
        if self.target.is_document() {
            return entries.iter().try_for_each(|entry| self.target.document(entry.get().as_bytes()));
        }
        let rows = entries.iter().map(|entry| Ok(row(&parsed(entry)?))).collect::<Result<Vec<_>, Error>>()?;
        match with_titles {
            true => screen::table(&COLUMNS, &rows),
            false => screen::rows(&COLUMNS, &rows),
        }
    }
}

fn parsed(entry: &RawValue) -> Result<Entry, Error> {
    document::read(ACTION, entry.get().as_bytes())
}

/// Returns a position of the log, a number or a text.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

const COLUMNS: [Column<'static>; 8] = [
    whole("TIME"),
    cut("SUBJECT"),
    whole("ADDRESS"),
    whole("ACTION"),
    whole("VERDICT"),
    cut("TENANT"),
    whole("SUBMISSION"),
    cut("DETAIL"),
];

fn row(entry: &Entry) -> Vec<Cell> {
    let text = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or_default());
    let style = match entry.verdict.as_str() {
        "denied" => Style::new().fg_color(Some(AnsiColor::Red.into())),
        _ => Style::new(),
    };
    vec![
        Cell::new(&entry.at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)).unwrap_or_default()),
        text(if entry.subject_name.is_some() { &entry.subject_name } else { &entry.subject }),
        text(&entry.address),
        Cell::new(&entry.action),
        Cell::styled(&entry.verdict, style),
        text(&entry.tenant),
        text(&entry.submission),
        text(&entry.detail),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn row_shows_who_did_what() {
        let text = r#"{"id": 7, "at": "2026-01-02T03:04:05.678Z", "subject": "corp:alice",
            "address": "10.0.0.7", "action": "kill", "tenant": "analytics", "submission": "driver-1-1",
            "verdict": "denied", "detail": "needs the role\nadmin", "requestId": "r1"}"#;
        let rows = [row(&document::documented("Entry", text)), row(&Entry::default())];
        let of_key =
            Entry { subject: Some("key:0123".into()), subject_name: Some("airflow".into()), ..Entry::default() };
        assert!(table::layout(&COLUMNS, &[row(&of_key)], None).contains("airflow"));
        assert_eq!(
            anstream::adapter::strip_str(&table::layout(&COLUMNS, &rows[..1], None)).to_string(),
            "TIME                  SUBJECT     ADDRESS   ACTION  VERDICT  TENANT     SUBMISSION  DETAIL\n\
             2026-01-02T03:04:05Z  corp:alice  10.0.0.7  kill    denied   analytics  driver-1-1  needs the role admin\n"
        );
        assert_eq!(word(&json!(7)).as_deref(), Some("7"));
        assert_eq!(word(&json!("a")).as_deref(), Some("a"));
        assert_eq!(word(&Value::Null), None);
    }
}
