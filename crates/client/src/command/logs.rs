//! `sparkgate logs`.

use chrono::{DateTime, Utc};
use clap::Args;
use reqwest::Response;

use super::Outcome;
use crate::{
    api::{Api, Call},
    error::{Error, root},
    follow::{End, attempts, reconnecting},
    lines::Lines,
    named::Named,
    options::Gateway,
    screen::{self, Foreign, note},
    span::Moment,
};
use sparkgate_submission::SubmissionId;

#[derive(Debug, Args)]
pub struct Logs {
    #[command(flatten)]
    gateway: Gateway,
    /// The ids of the submissions, or their beginnings; @latest is the newest one.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Named>,
    /// Print new lines as they are written, until the driver has ended, also across restarts of the gateway.
    #[arg(short, long)]
    follow: bool,
    /// Only this many of the last lines.
    #[arg(long, value_name = "LINES")]
    tail: Option<u64>,
    /// Only lines written after this time: a time ago such as 10m, or a date such as 2026-01-02 or 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// The log of the executor with this number instead of the driver's.
    #[arg(long, value_name = "N")]
    executor: Option<u32>,
    /// The log of this attempt instead of the latest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    attempt: Option<i64>,
    /// Only what the application itself wrote: no records of Spark's logger. --tail counts all lines.
    #[arg(long)]
    own_output: bool,
    /// Begin each line with its time.
    #[arg(long)]
    timestamps: bool,
}

impl Logs {
    pub(super) async fn run(self) -> Outcome {
        if self.follow && self.ids.len() > 1 {
            return Err(Error::Here("--follow prints one log: give one id".to_owned()));
        }
        let api = Api::new(&self.gateway)?;
        let ids = Named::all_resolved(&self.ids, &api).await?;
        for (at, id) in ids.iter().enumerate() {
            if ids.len() > 1 {
                let gap = if at > 0 { "\n" } else { "" };
                screen::text(&format!("{gap}==> {id} <==\n"))?;
            }
            OneLog { logs: &self, id }.print(&api).await?;
        }
        Ok(0)
    }
}

/// The log of one submission.
struct OneLog<'a> {
    logs: &'a Logs,
    id: &'a SubmissionId,
}

impl OneLog<'_> {
    async fn print(&self, api: &Api) -> Result<(), Error> {
        let Logs { since, follow, timestamps, tail, attempt, .. } = self.logs;
        let start = since.map(|time| time.rfc3339(Utc::now()));
        if *follow {
            let (mut lines, mut out) = (Lines::new(*timestamps), Foreign::new());
            reconnecting(async || self.stream(api, start.as_deref(), &mut lines, &mut out).await).await?;
            return out.finish();
        }
        let mut body = self.open(api, &self.call(*tail, start.as_deref(), *attempt)).await?;
        let mut out = Foreign::new();
        let broken = |error| Error::Broken { action: self.action(), cause: root(&error) };
        while let Some(bytes) = body.chunk().await.map_err(broken)? {
            out.write(&bytes)?;
        }
        out.finish()
    }

    /// Prints one stream of a followed log: from `start`, or what `lines` lack. Written in pieces as they arrive, because the
    /// rest of a line may take long.
    async fn stream(&self, api: &Api, start: Option<&str>, lines: &mut Lines, out: &mut Foreign) -> Result<End, Error> {
        let call = match (lines.resume(), lines.latest()) {
            (Some(since), Some(latest)) => self.call(None, Some(&since), self.attempt_at(api, latest).await?),
            _ => self.call(self.logs.tail, start, self.logs.attempt),
        };
        let mut body = self.open(api, &call).await?;
        loop {
            let bytes = match body.chunk().await {
                Err(_) => return Ok(End::Cut),
                Ok(None) => break,
                Ok(Some(bytes)) => bytes,
            };
            let new = lines.take(&bytes);
            if lines.has_gap() {
                note("lines are missing here: they were deleted before they could be read");
            }
            out.write(&new)?;
        }
        out.write(&lines.finish())?;
        Ok(End::Done)
    }

    /// Returns the attempt that wrote a line at this time: a later attempt may have started since.
    async fn attempt_at(&self, api: &Api, time: DateTime<Utc>) -> Result<Option<i64>, Error> {
        if self.logs.attempt.is_some() {
            return Ok(self.logs.attempt);
        }
        let attempts = attempts(api, self.id.as_str()).await?;
        let begun = attempts.iter().filter(|attempt| attempt.queued_at.is_none_or(|at| at <= time));
        Ok(begun.map(|attempt| attempt.attempt).max())
    }

    async fn open(&self, api: &Api, call: &Call) -> Result<Response, Error> {
        let response = api.open(call).await?;
        if response.headers().get("sparkgate-log-source").is_some_and(|source| source == "kept") {
            note("the pod is gone: this is the last part of its log, which was kept");
        }
        Ok(response)
    }

    fn action(&self) -> String {
        format!("reading the log of {}", self.id)
    }

    fn call(&self, tail: Option<u64>, since: Option<&str>, attempt: Option<i64>) -> Call {
        let Logs { follow, executor, timestamps, own_output, .. } = self.logs;
        Call::get(self.action(), &["submissions", self.id.as_str(), "logs"])
            .accept("text/plain, application/problem+json")
            .query_if("follow", follow.then_some(true))
            .query_if("tail", tail)
            .query_if("since", since)
            .query_if("executor", *executor)
            .query_if("attempt", attempt)
            .query_if("ownOutput", own_output.then_some(true))
            // Following needs the times to continue after a broken connection.
            .query_if("timestamps", (*timestamps || *follow).then_some(true))
    }
}
