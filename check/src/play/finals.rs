//! What is there at the end.

use std::{io::Write, time::Duration};

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{JOB, RUN, gateway::Gateway, record::Recorder};
use crate::history::{Attempt, Change, Document, Found, Line, is_end};

const PAUSE: Duration = Duration::from_millis(500);
/// How long an event may take to get its number.
const NUMBERED: Duration = Duration::from_secs(60);

/// Returns whether a submission of the run hasn't ended.
///
/// # Errors
/// They can't be listed before the deadline.
pub(super) async fn are_live(gateways: &[Gateway], run: &str, deadline: Instant) -> anyhow::Result<bool> {
    let all = list(gateways, run, deadline).await?;
    Ok(all.iter().any(|document| !document["state"].as_str().is_some_and(is_end)))
}

/// Records all submissions of the run. Returns the number of their last event.
///
/// # Errors
/// They can't be read, or the history can't be written.
pub async fn record(
    gateways: &[Gateway],
    run: &str,
    recorder: &Recorder<impl Write>,
    deadline: Instant,
) -> anyhow::Result<i64> {
    let mut last = 0;
    // Reads may take as long again as the run.
    let deadline = deadline.max(Instant::now() + NUMBERED);
    for document in list(gateways, run, deadline).await? {
        let job = document["labels"][JOB]
            .as_str()
            .and_then(|job| job.parse().ok())
            .context("a submission without its job")?;
        let document: Document = serde_json::from_value(document)?;
        let path = format!("/v1/submissions/{}", document.id);
        let attempts: Vec<Attempt> = items(gateways, &format!("{path}/attempts"), deadline).await?;
        let events = loop {
            let events: Vec<Change> = items(gateways, &format!("{path}/events"), deadline).await?;
            if events.iter().all(|change| change.sequence.is_some()) || Instant::now() > deadline {
                break events;
            }
            sleep(PAUSE).await;
        };
        last = events.iter().filter_map(|change| change.sequence).fold(last, i64::max);
        recorder.add(Line::Found(Found { job, document, attempts, events }))?;
    }
    Ok(last)
}

async fn list(gateways: &[Gateway], run: &str, deadline: Instant) -> anyhow::Result<Vec<Value>> {
    items(gateways, &format!("/v1/submissions?limit=200&label={RUN}={run}"), deadline).await
}

/// Reads all pages of a list.
async fn items<T: DeserializeOwned>(gateways: &[Gateway], path: &str, deadline: Instant) -> anyhow::Result<Vec<T>> {
    let (mut all, mut next) = (Vec::new(), String::new());
    loop {
        let mut page = read(gateways, &format!("{path}{next}"), deadline).await?;
        all.append(&mut serde_json::from_value(page["items"].take())?);
        let Some(cursor) = page["next"].as_str() else { return Ok(all) };
        let name = if path.contains("/events") { "after" } else { "cursor" };
        let joint = if path.contains('?') { '&' } else { '?' };
        next = format!("{joint}{name}={cursor}");
    }
}

async fn read(gateways: &[Gateway], path: &str, deadline: Instant) -> anyhow::Result<Value> {
    for gateway in gateways.iter().cycle() {
        if let Some(page) = gateway.get(path).await {
            return Ok(page);
        }
        if Instant::now() > deadline {
            break;
        }
        sleep(PAUSE).await;
    }
    anyhow::bail!("{path} can't be read")
}
