//! `sparkgate logs`.

use chrono::Utc;
use clap::Args;
use http_body_util::BodyExt;

use super::Outcome;
use crate::{
    client::{
        api::{Api, Call},
        error::{Error, root},
        screen::{self, note},
        server::Target,
        span::Moment,
    },
    submission::SubmissionId,
};

#[derive(Debug, Args)]
pub struct Logs {
    #[command(flatten)]
    target: Target,
    /// The submission's id.
    id: SubmissionId,
    /// Print new lines as they are written, until the driver has ended.
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
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Begin each line with its time.
    #[arg(long)]
    timestamps: bool,
}

impl Logs {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.server)?;
        let response = api.open(&self.call()).await?;
        if response.headers().get("sparkgate-log-source").is_some_and(|source| source == "kept") {
            note("the pod is gone: this is the last part of its log, which was kept");
        }
        let mut body = response.into_body();
        // Written in pieces as they arrive, because the rest of a line may take long.
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Error::Broken {
                action: format!("reading the log of {}", self.id),
                cause: root(&error),
            })?;
            if let Ok(bytes) = frame.into_data() {
                screen::write(&bytes)?;
            }
        }
        Ok(0)
    }

    fn call(&self) -> Call {
        let id = self.id.as_str();
        Call::get(format!("reading the log of {id}"), &["submissions", id, "logs"])
            .accept("text/plain, application/problem+json")
            .query_if("follow", self.follow.then_some(true))
            .query_if("tail", self.tail)
            .query_if("since", self.since.map(|time| time.rfc3339(Utc::now())))
            .query_if("executor", self.executor)
            .query_if("attempt", self.attempt)
            .query_if("timestamps", self.timestamps.then_some(true))
    }
}
