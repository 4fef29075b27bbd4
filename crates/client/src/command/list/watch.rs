//! `sparkgate list --watch`: a list that goes on with each change.
//!
//! The position in the order of events is read before the list, so that no change between the list and the stream is missed. Each event
//! makes the command read its submission, and print it unless it has printed exactly this state. So an event that comes twice, or that the
//! list already shows, prints nothing.

use std::{collections::HashMap, time::Duration};

use chrono::{DateTime, Utc};
use http::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{ACTION, List, read};
use crate::{
    api::{Api, Call},
    document::{self, Change, Submission},
    error::Error,
    follow::{End, look, reconnecting},
    pages::pages,
    sse::Reader,
    table::Widths,
};
use sparkgate_submission::State;

/// The longest silence of a stream. The gateway sends data every 15 seconds, so a stream that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(50);
/// When more submissions than this were printed, those that have ended are forgotten: no event of them comes.
const MOST_KNOWN: usize = 50_000;

/// A list that is being watched.
pub(super) struct Watch<'a> {
    list: &'a List,
    api: &'a Api,
    /// The time from which the filters count back.
    begun: DateTime<Utc>,
    /// The event up to which everything was printed. `None`: the list has to be read first.
    position: Option<String>,
    /// State and attempt of each submission as they were printed.
    known: HashMap<String, (String, i64)>,
    widths: Widths,
}

impl<'a> Watch<'a> {
    pub(super) fn new(list: &'a List, api: &'a Api) -> Self {
        Self { list, api, begun: Utc::now(), position: None, known: HashMap::new(), widths: Widths::default() }
    }

    /// Prints the list and each change, without an end.
    ///
    /// # Errors
    /// The gateway refuses a request, can't be reached the first time, or is unavailable for minutes.
    pub(super) async fn run(mut self) -> Result<(), Error> {
        reconnecting(async || match self.stream().await {
            // The events after the position aren't kept any more, or the database was restored: the list says what there is now.
            Err(Error::Problem(problem)) if matches!(&*problem.code, "cursor-expired" | "invalid-cursor") => {
                self.position = None;
                Ok(End::Cut)
            }
            ended => ended,
        })
        .await
    }

    /// Prints the changes of one stream, after the list if there is no position.
    async fn stream(&mut self) -> Result<End, Error> {
        let position = match self.position.clone() {
            Some(position) => position,
            None => {
                let position = self.now().await?;
                let (items, _) = self.list.items(self.api, self.begun).await?;
                self.print(&items, true)?;
                self.position = Some(position.clone());
                position
            }
        };
        let mut body = self.api.open(&self.events(&position)).await?;
        let mut reader = Reader::default();
        loop {
            let Ok(Ok(Some(bytes))) = timeout(SILENCE, body.chunk()).await else { return Ok(End::Cut) };
            let mut changed: Vec<String> = Vec::new();
            for message in reader.take(&bytes).iter().filter(|message| message.event == "state") {
                let Change { submission_id, .. } = document::read(ACTION, message.data.as_bytes())?;
                if !changed.contains(&submission_id) {
                    changed.push(submission_id);
                }
            }
            for id in changed {
                if let Some(item) = self.changed(&id).await? {
                    self.print(&[item], false)?;
                }
            }
            // Only now: a stream that ends before repeats these events.
            if let Some(id) = reader.last_id() {
                self.position = Some(id.clone());
            }
        }
    }

    /// Returns the position after the newest event.
    async fn now(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Events {
            next: String,
        }
        let call = Call::get(ACTION, &["events"]).query("limit", 1);
        let Events { next } = document::read(ACTION, &self.api.send(&call).await?.body)?;
        Ok(next)
    }

    /// Returns the call for the events after a position, with the filters that events have, too.
    fn events(&self, position: &str) -> Call {
        let mut call = Call::get(ACTION, &["events"])
            .accept("text/event-stream, application/problem+json")
            .query_if("owner", self.list.owner.as_ref())
            .query_if("namespace", self.list.namespace.as_ref());
        for (key, value) in &self.list.labels {
            call = call.query("label", format_args!("{key}={value}"));
        }
        match HeaderValue::from_str(position) {
            Ok(position) => call.header("last-event-id", position),
            Err(_) => call,
        }
    }

    /// Reads a submission that has changed. `None` if it doesn't match the filters and was never printed.
    async fn changed(&self, id: &str) -> Result<Option<Box<RawValue>>, Error> {
        let call = self.list.call(self.begun, None).query("id", id);
        let (items, _) = pages::<Box<RawValue>>(self.api, None, false, |_| call.clone()).await?;
        for item in items {
            if read(&item)?.id == id {
                return Ok(Some(item));
            }
        }
        if !self.known.contains_key(id) {
            return Ok(None);
        }
        // It was printed, and no longer matches: its new state says why.
        match look(self.api, id).await {
            Ok(seen) => document::read(ACTION, &seen.body).map(Some),
            Err(Error::Problem(problem)) if problem.status == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Prints those of the submissions whose state was not printed yet. The list itself is printed even if it is empty.
    fn print(&mut self, items: &[Box<RawValue>], is_list: bool) -> Result<(), Error> {
        let mut new: Vec<(&RawValue, Submission)> = Vec::new();
        for item in items {
            let submission = read(item)?;
            let state = (submission.state.clone(), submission.attempt);
            if self.known.insert(submission.id.clone(), state.clone()).as_ref() != Some(&state) {
                new.push((item, submission));
            }
        }
        if self.known.len() > MOST_KNOWN {
            self.known.retain(|_, (state, _)| !state.parse().is_ok_and(State::is_terminal));
        }
        if new.is_empty() && !is_list {
            return Ok(());
        }
        self.list.print_part(&new, &mut self.widths)
    }
}
