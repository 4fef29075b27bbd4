//! `sparkgate events`.

use std::time::Duration;

use chrono::SecondsFormat;
use clap::Args;
use http::HeaderValue;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};

use super::{Outcome, label};
use crate::{
    client::{
        api::{Api, Call},
        clean,
        document::{self, Change},
        error::Error,
        follow::look,
        screen::{Screen, note},
        server::Target,
        sse::Reader,
    },
    submission::{State, SubmissionId},
};

#[derive(Debug, Args)]
pub struct Events {
    #[command(flatten)]
    target: Target,
    /// Of one submission: all of its changes, until it has ended. Else what changes from now on.
    id: Option<SubmissionId>,
    /// Go on behind the change with this number.
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    /// Only of submissions with this label; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Only of submissions of this user.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Only of submissions in this namespace.
    #[arg(long)]
    namespace: Option<String>,
}

/// The gateway says something every 15 seconds: a stream that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(50);
/// How long a gateway that answered before may be away.
const AWAY: Duration = Duration::from_secs(300);
const ACTION: &str = "following events";

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
}

/// How a stream ended.
enum End {
    /// Everything that was asked for is told.
    Done,
    /// It is opened again behind what was last told.
    Cut,
}

impl Events {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.server)?;
        let mut last = self.after.map(|after| after.to_string());
        if let (Some(id), None) = (&self.id, self.after) {
            let (told, has_ended) = self.history(&api, id.as_str()).await?;
            if has_ended {
                return Ok(0);
            }
            last = Some(told.to_string());
        }
        let mut answered = None;
        loop {
            match self.stream(&api, &mut last).await {
                Ok(End::Done) => return Ok(0),
                Ok(End::Cut) => answered = Some(Instant::now()),
                Err(error) if error.is_passing() && answered.is_some_and(|at| at.elapsed() < AWAY) => {
                    note(&format!("{error}\n  still following"));
                }
                Err(error) => return Err(error),
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Tells what has happened to one submission so far; answers the number of the last change, and whether that was the
    /// end.
    async fn history(&self, api: &Api, id: &str) -> Result<(i64, bool), Error> {
        let (mut told, mut has_ended) = (None, false);
        loop {
            let mut after: Option<String> = None;
            loop {
                let call = Call::get(ACTION, &["submissions", id, "events"]).query_if("after", after.as_ref());
                let page: Page = document::read(ACTION, &api.send(&call).await?.body)?;
                for item in &page.items {
                    let change: Change = document::read(ACTION, item.get().as_bytes())?;
                    // The newest may have none yet: they come with the stream.
                    if change.sequence.is_some() {
                        has_ended = self.tell(item.get())?;
                        told = change.sequence;
                    }
                }
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            match told {
                Some(told) => return Ok((told, has_ended && look(api, id).await?.submission.has_ended())),
                // Accepted this very moment: the first change gets its number soon.
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

    /// Tells what one stream brings; `last` is where it is to be taken up again.
    async fn stream(&self, api: &Api, last: &mut Option<String>) -> Result<End, Error> {
        let mut body = api.open(&self.call(last.as_deref())).await?.into_body();
        let mut reader = Reader::default();
        loop {
            let frame = match timeout(SILENCE, body.frame()).await {
                Err(_) | Ok(None | Some(Err(_))) => return Ok(End::Cut),
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(bytes) = frame.into_data() else { continue };
            for message in reader.take(&bytes) {
                let ended = message.event == "state" && self.tell(&message.data)?;
                if message.id.is_some() {
                    *last = message.id;
                }
                if let (true, Some(id)) = (ended, &self.id)
                    // After a failed attempt there may be another.
                    && look(api, id.as_str()).await?.submission.has_ended()
                {
                    return Ok(End::Done);
                }
            }
        }
    }

    /// Prints a change; answers whether it is an end.
    fn tell(&self, data: &str) -> Result<bool, Error> {
        let change: Change = document::read(ACTION, data.as_bytes())?;
        let screen = Screen::new();
        match self.target.json() {
            true => screen.document(data.as_bytes())?,
            false => screen.line(&line(&change, |state| screen.state(state)))?,
        }
        Ok(change.state.parse().is_ok_and(State::is_terminal))
    }
}

/// `time  id  state  reason: message`. Its columns are as wide as those of all changes, whatever comes later.
fn line(change: &Change, coloured: impl Fn(&str) -> String) -> String {
    let at = change.at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)).unwrap_or_default();
    let attempt = if change.attempt > 1 { format!(" #{}", change.attempt) } else { String::new() };
    let id = clean::line(&change.submission_id).into_owned();
    // The longest state has nine letters. A colour has none.
    let blanks = " ".repeat(9_usize.saturating_sub(change.state.len()));
    let because = [change.reason.as_deref(), change.message.as_deref()];
    let because: Vec<&str> = because.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    let text =
        format!("{at}  {id}{attempt}  {}{blanks}  {}", coloured(&change.state), clean::line(&because.join(": ")));
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_line() {
        let read = |text: &str| line(&document::read(ACTION, text.as_bytes()).unwrap(), str::to_owned);
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
