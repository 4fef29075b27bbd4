//! `sparkgate webhook deliveries` and `sparkgate webhook replay`.

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{
    Args, ValueEnum,
    builder::styling::{AnsiColor, Style},
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::name::WebhookName;
use crate::{
    api::{Api, Call},
    clean,
    command::{Outcome, keep},
    document,
    error::Error,
    options::{Gateway, ListFormat},
    pages::pages,
    screen::{self, note},
    span,
    table::{Cell, Column, cut, whole},
};

#[derive(Debug, Args)]
pub struct Deliveries {
    #[command(flatten)]
    gateway: Gateway,
    /// Output format: a text table, also with more columns (wide), only ids (name), the gateway's JSON unchanged, or the same as YAML.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", help_heading = "Gateway")]
    output: ListFormat,
    /// The id of the webhook, or its beginning.
    #[arg(value_name = "ID")]
    id: WebhookName,
    /// Only deliveries that are to be sent (pending), arrived (delivered), or were given up (dead).
    #[arg(long, value_name = "STATUS")]
    status: Option<Status>,
    /// Maximum number of deliveries to list.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// List all matching deliveries.
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,
    /// Continue an earlier list with the same filter: its `next`.
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    gateway: Gateway,
    /// The id of the webhook, or its beginning.
    #[arg(value_name = "ID")]
    id: WebhookName,
    /// The ids of deliveries, also of some that arrived [default: all that were given up].
    #[arg(value_name = "DELIVERY")]
    deliveries: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Delivered,
    Dead,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

/// A delivery, as far as it is displayed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Document {
    id: String,
    submission_id: String,
    sequence: i64,
    attempt: i64,
    state: String,
    status: String,
    tries: i64,
    queued_at: Option<DateTime<Utc>>,
    next_try_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    http_status: Option<i64>,
    error: Option<String>,
}

const ACTION: &str = "listing deliveries";
const PAGE: u32 = 500;

const COLUMNS: [Column<'static>; 10] = [
    whole("ID"),
    whole("STATUS"),
    whole("SUBMISSION"),
    whole("ATTEMPT"),
    whole("STATE"),
    whole("TRIES"),
    whole("AGE"),
    whole("NEXT TRY"),
    whole("HTTP"),
    cut("ERROR"),
];

/// The columns of a wide list in addition.
const WIDE: [Column<'static>; 3] = [whole("SEQUENCE"), whole("QUEUED"), whole("ENDED")];

impl Deliveries {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let id = self.id.resolved(&api).await?;
        if self.output.is_document() && !self.all {
            self.output.document(&api.send(&self.call(&id, self.cursor.as_deref())).await?.body)?;
            return Ok(0);
        }
        let call = |cursor: Option<&str>| self.call(&id, cursor);
        let (items, next) = pages::<Box<RawValue>>(&api, self.cursor.clone(), self.all, call).await?;
        if self.output.is_document() {
            self.output.document(json!({ "items": items }).to_string().as_bytes())?;
            return Ok(0);
        }
        let deliveries = items.iter().map(|item| document::read(ACTION, item.get().as_bytes()));
        let deliveries: Vec<Document> = deliveries.collect::<Result<_, Error>>()?;
        let now = Utc::now();
        match self.output {
            ListFormat::Name => {
                let ids: String = deliveries.iter().map(|one| format!("{}\n", clean::line(&one.id))).collect();
                screen::text(&ids)?;
            }
            ListFormat::Wide => {
                let rows: Vec<_> = deliveries.iter().map(|one| [row(one, now), wide(one)].concat()).collect();
                screen::table(&[&COLUMNS[..], &WIDE].concat(), &rows)?;
            }
            _ => screen::table(&COLUMNS, &deliveries.iter().map(|one| row(one, now)).collect::<Vec<_>>())?,
        }
        match next {
            Some(_) => note("there are more: use --all or a larger --limit"),
            None if deliveries.is_empty() => note("no deliveries"),
            None => {}
        }
        Ok(0)
    }

    fn call(&self, id: &str, cursor: Option<&str>) -> Call {
        Call::get(ACTION, &["webhooks", id, "deliveries"])
            .query("limit", if self.all { PAGE } else { self.limit })
            .query_if("status", self.status.map(Status::as_str))
            .query_if("cursor", cursor)
    }
}

fn row(delivery: &Document, now: DateTime<Utc>) -> Vec<Cell> {
    let colour = match delivery.status.as_str() {
        "delivered" => Some(AnsiColor::Green),
        "dead" => Some(AnsiColor::Red),
        _ => None,
    };
    let next = delivery.next_try_at.map(|at| match at <= now {
        true => "now".to_owned(),
        false => format!("in {}", span::between(now, at)),
    });
    vec![
        Cell::new(&delivery.id),
        Cell::styled(&delivery.status, Style::new().fg_color(colour.map(Into::into))),
        Cell::new(&delivery.submission_id),
        Cell::new(&delivery.attempt.to_string()),
        Cell::new(&delivery.state),
        Cell::new(&delivery.tries.to_string()),
        Cell::new(&delivery.queued_at.map(|at| span::between(at, now)).unwrap_or_default()),
        Cell::new(&next.unwrap_or_default()),
        Cell::new(&delivery.http_status.map(|status| status.to_string()).unwrap_or_default()),
        Cell::new(delivery.error.as_deref().unwrap_or_default()),
    ]
}

fn wide(delivery: &Document) -> Vec<Cell> {
    let at = |at: Option<DateTime<Utc>>| {
        Cell::new(&at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)).unwrap_or_default())
    };
    vec![Cell::new(&delivery.sequence.to_string()), at(delivery.queued_at), at(delivery.ended_at)]
}

impl Replay {
    /// Queues all that are named, even if some of the calls fail. Returns the exit code of the first failure.
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let id = self.id.resolved(&api).await?;
        let mut failed = None;
        let mut queued = 0;
        if self.deliveries.is_empty() {
            queued = replay(&api, &["webhooks", &id, "replay"]).await?;
        }
        for delivery in &self.deliveries {
            match replay(&api, &["webhooks", &id, "deliveries", delivery, "replay"]).await {
                Ok(count) => queued += count,
                Err(error) => keep(&mut failed, &error, delivery),
            }
        }
        match queued {
            1 => note("one delivery is queued again"),
            0 if failed.is_none() => note("no delivery was given up"),
            count => note(&format!("{count} deliveries are queued again")),
        }
        Ok(failed.unwrap_or(0))
    }
}

/// Queues deliveries again and returns how many.
async fn replay(api: &Api, path: &[&str]) -> Result<u64, Error> {
    #[derive(Deserialize)]
    struct Queued {
        deliveries: u64,
    }
    // A second call would find them pending and count none.
    let call = Call::post("queueing deliveries again", path, String::new()).not_repeated();
    let queued: Queued = document::read(call.action(), &api.send(&call).await?.body)?;
    Ok(queued.deliveries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn row_shows_when_a_delivery_is_tried_again() {
        let now = DateTime::parse_from_rfc3339("2026-01-02T04:00:00Z").unwrap().to_utc();
        let rows = [
            r#"{"id": "12", "status": "pending", "submissionId": "driver-1", "attempt": 1, "state": "FAILED", "tries": 3,
                "queuedAt": "2026-01-02T03:58:00Z", "nextTryAt": "2026-01-02T04:05:00Z", "httpStatus": 500,
                "error": "the receiver answered 500"}"#,
            r#"{"id": "11", "status": "delivered", "submissionId": "driver-1", "attempt": 1, "state": "RUNNING", "tries": 1,
                "queuedAt": "2026-01-02T03:57:00Z", "endedAt": "2026-01-02T03:57:01Z", "httpStatus": 200}"#,
        ]
        .map(|text| row(&document::documented("WebhookDelivery", text), now));
        assert_eq!(
            anstream::adapter::strip_str(&table::layout(&COLUMNS, &rows, None)).to_string(),
            "ID  STATUS     SUBMISSION  ATTEMPT  STATE    TRIES  AGE  NEXT TRY  HTTP  ERROR\n\
             12  pending    driver-1    1        FAILED   3      2m   in 5m     500   the receiver answered 500\n\
             11  delivered  driver-1    1        RUNNING  1      3m             200\n"
        );
    }
}
