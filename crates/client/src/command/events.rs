//! `sparkgate events`.

use std::time::Duration;

use chrono::SecondsFormat;
use clap::Args;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use super::{Outcome, label};
use crate::{
    api::{Api, Call},
    clean,
    document::{self, Change},
    error::Error,
    follow::{End, look, reconnecting},
    named::Named,
    options::Target,
    screen,
    sse::Reader,
};
use sparkgate_submission::State;

#[derive(Debug, Args)]
pub struct Events {
    #[command(flatten)]
    target: Target,
    /// Print all state changes of this submission, until it has ended. Without an id, print the state changes of all
    /// submissions from now on. The beginning of the id will do; @latest is the newest submission.
    id: Option<Named>,
    /// Start after the event with this sequence number.
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    /// Only events of submissions with this label; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Only events of this user's submissions.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Only events of submissions in this namespace.
    #[arg(long)]
    namespace: Option<String>,
}

/// The longest silence of a stream. The gateway sends data every 15 seconds, so a stream that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(50);
const ACTION: &str = "following events";

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
}

/// What was printed.
struct Printed {
    /// The id of the last message, after which the next stream continues.
    last: Option<String>,
    /// The state of the last event is terminal.
    terminal: bool,
}

impl Events {
    pub(super) async fn run(mut self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        if let Some(name) = &self.id {
            self.id = Some(Named::Id(name.resolved(&api).await?));
        }
        let mut printed = Printed { last: self.after.map(|after| after.to_string()), terminal: false };
        if let (Some(id), None) = (&self.id, self.after) {
            let (sequence, has_ended) = self.history(&api, &id.to_string()).await?;
            if has_ended {
                return Ok(0);
            }
            printed.last = Some(sequence.to_string());
        }
        reconnecting(async || self.stream(&api, &mut printed).await).await?;
        Ok(0)
    }

    /// Prints the events of one submission so far. Returns the sequence number of the last one, and whether the submission
    /// has ended.
    async fn history(&self, api: &Api, id: &str) -> Result<(i64, bool), Error> {
        let (mut sequence, mut has_ended) = (None, false);
        loop {
            let mut after: Option<String> = None;
            loop {
                let call = Call::get(ACTION, &["submissions", id, "events"]).query_if("after", after.as_ref());
                let page: Page = document::read(ACTION, &api.send(&call).await?.body)?;
                for item in &page.items {
                    let change: Change = document::read(ACTION, item.get().as_bytes())?;
                    // The newest events may have no number yet: the stream will send them.
                    if change.sequence.is_some() {
                        has_ended = self.tell(item.get())?;
                        sequence = change.sequence;
                    }
                }
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            match sequence {
                Some(sequence) => return Ok((sequence, has_ended && look(api, id).await?.submission.has_ended())),
                // The submission was only just accepted: its first event gets its number soon.
                None => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    fn call(&self, last: Option<&str>) -> Call {
        let mut call = Call::get(ACTION, &["events"])
            .accept("text/event-stream, application/problem+json")
            .query_if("submission", self.id.as_ref())
            .query_if("owner", self.owner.as_ref())
            .query_if("namespace", self.namespace.as_ref());
        for (key, value) in &self.labels {
            call = call.query("label", format_args!("{key}={value}"));
        }
        match last.and_then(|last| HeaderValue::from_str(last).ok()) {
            Some(last) => call.header("last-event-id", last),
            None => call,
        }
    }

    /// Prints the events of one stream.
    async fn stream(&self, api: &Api, printed: &mut Printed) -> Result<End, Error> {
        if self.is_done(api, printed).await? {
            return Ok(End::Done);
        }
        let mut body = api.open(&self.call(printed.last.as_deref())).await?;
        let mut reader = Reader::default();
        loop {
            let Ok(Ok(Some(bytes))) = timeout(SILENCE, body.chunk()).await else { return Ok(End::Cut) };
            for message in reader.take(&bytes) {
                if message.event == "state" {
                    printed.terminal = self.tell(&message.data)?;
                }
                if message.id.is_some() {
                    printed.last = message.id;
                }
                match self.is_done(api, printed).await {
                    Ok(true) => return Ok(End::Done),
                    Ok(false) => {}
                    // The next stream asks again: no further event may come.
                    Err(error) if error.is_passing() => return Ok(End::Cut),
                    Err(error) => return Err(error),
                }
            }
            if let Some(id) = reader.last_id() {
                printed.last = Some(id.clone());
            }
        }
    }

    /// Returns whether the last event of the submission was printed. A failed attempt may be followed by a retry.
    async fn is_done(&self, api: &Api, printed: &Printed) -> Result<bool, Error> {
        match &self.id {
            Some(id) if printed.terminal => Ok(look(api, &id.to_string()).await?.submission.has_ended()),
            _ => Ok(false),
        }
    }

    /// Prints an event. Returns whether its state is terminal.
    fn tell(&self, data: &str) -> Result<bool, Error> {
        let change: Change = document::read(ACTION, data.as_bytes())?;
        match self.target.is_document() {
            true => self.target.document(data.as_bytes())?,
            false => screen::line(&line(&change))?,
        }
        Ok(change.state.parse().is_ok_and(State::is_terminal))
    }
}

/// Formats an event as `time  id  state  reason: message`. The state's column has a fixed width, because later events are
/// not known yet.
fn line(change: &Change) -> String {
    let at = change.at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)).unwrap_or_default();
    let attempt = if change.attempt > 1 { format!(" #{}", change.attempt) } else { String::new() };
    let id = clean::line(&change.submission_id).into_owned();
    // The longest state has nine letters. A colour's escapes don't count.
    let blanks = " ".repeat(9_usize.saturating_sub(change.state.len()));
    let because = [change.reason.as_deref(), change.message.as_deref()];
    let because: Vec<&str> = because.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    let text =
        format!("{at}  {id}{attempt}  {}{blanks}  {}", screen::state(&change.state), clean::line(&because.join(": ")));
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_printed_as_one_line() {
        let read = |text: &str| anstream::adapter::strip_str(&line(&document::documented("Event", text))).to_string();
        assert_eq!(
            read(
                r#"{"sequence": 17, "submissionId": "driver-1-1", "attempt": 2, "state": "FAILED", "previous": "RUNNING",
                "reason": "Error", "message": "code 3\nthen", "at": "2026-01-02T03:04:05.678Z"}"#
            ),
            "2026-01-02T03:04:05Z  driver-1-1 #2  FAILED     Error: code 3 then"
        );
        assert_eq!(
            read(r#"{"submissionId": "driver-1-1", "attempt": 1, "state": "LAUNCHING", "at": "2026-01-02T03:04:05Z"}"#),
            "2026-01-02T03:04:05Z  driver-1-1  LAUNCHING"
        );
    }
}
