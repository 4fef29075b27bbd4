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
    screen::{Foreign, note},
    span::Moment,
};

#[derive(Debug, Args)]
pub struct Logs {
    #[command(flatten)]
    gateway: Gateway,
    /// The submission's id, or @latest.
    id: Named,
    /// Print new lines as they are written, until the driver has ended, also across restarts of the gateway.
    #[arg(short, long)]
    follow: bool,
    /// Only this many of the last lines.
    #[arg(long, value_name = "LINES")]
    tail: Option<u64>,
    /// Only lines written after this time: a time ago such as 10m, or a date such as 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// The log of the executor with this number instead of the driver's.
    #[arg(long, value_name = "N")]
    executor: Option<u32>,
    /// The log of this attempt instead of the latest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    attempt: Option<i64>,
    /// Begin each line with its time.
    #[arg(long)]
    timestamps: bool,
}

impl Logs {
    pub(super) async fn run(mut self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        self.id = self.id.resolved(&api).await?;
        let start = self.since.map(|time| time.rfc3339(Utc::now()));
        if self.follow {
            let (mut lines, mut out) = (Lines::new(self.timestamps), Foreign::new());
            reconnecting(async || self.stream(&api, start.as_deref(), &mut lines, &mut out).await).await?;
            out.finish()?;
            return Ok(0);
        }
        let mut body = self.open(&api, &self.call(self.tail, start.as_deref(), self.attempt)).await?;
        let mut out = Foreign::new();
        let broken = |error| Error::Broken { action: self.action(), cause: root(&error) };
        while let Some(bytes) = body.chunk().await.map_err(broken)? {
            out.write(&bytes)?;
        }
        out.finish()?;
        Ok(0)
    }

    /// Prints one stream of a followed log: from `start`, or what `lines` lack. Written in pieces as they arrive, because the
    /// rest of a line may take long.
    async fn stream(&self, api: &Api, start: Option<&str>, lines: &mut Lines, out: &mut Foreign) -> Result<End, Error> {
        let call = match (lines.resume(), lines.latest()) {
            (Some(since), Some(latest)) => self.call(None, Some(&since), self.attempt_at(api, latest).await?),
            _ => self.call(self.tail, start, self.attempt),
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
        if self.attempt.is_some() {
            return Ok(self.attempt);
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
        Call::get(self.action(), &["submissions", self.id.as_str(), "logs"])
            .accept("text/plain, application/problem+json")
            .query_if("follow", self.follow.then_some(true))
            .query_if("tail", tail)
            .query_if("since", since)
            .query_if("executor", self.executor)
            .query_if("attempt", attempt)
            // Following needs the times to continue after a broken connection.
            .query_if("timestamps", (self.timestamps || self.follow).then_some(true))
    }
}
