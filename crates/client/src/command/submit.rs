//! `sparkgate submit`.

mod line;
mod request;
mod upload;

use std::path::PathBuf;

use clap::Args;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::signal::ctrl_c;
use uuid::Uuid;

use super::{Outcome, label, wait::EXIT_CODES};
use crate::{
    api::{Answer, Api, Call},
    clean, document,
    error::Error,
    follow::{Progress, Seen, follow},
    options::Target,
    screen::{self, note},
    span::Span,
    why,
};
use line::CommandLine;

/// The exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Args)]
#[command(
    override_usage = "sparkgate submit [OPTIONS] APP [ARGS]...",
    after_help = format!("Options come before APP; all words after it are arguments of the application.\n\n{EXIT_CODES}")
)]
pub struct Submit {
    #[command(flatten)]
    target: Target,
    /// Wait for the end, and print state changes and failed attempts. The exit code is the driver's.
    #[arg(long)]
    wait: bool,
    /// Print the Kubernetes objects that would be created and the defaults that apply, without creating anything. Local files are
    /// uploaded.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// The Spark version of the driver, such as 4.1.4, or a line, 4.1 [default: that of the tenant or the gateway].
    #[arg(long, value_name = "VERSION")]
    spark_version: Option<String>,
    /// A label to filter submissions by; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Your own id of the submission, unique in the tenant: `list --client-id` finds it.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The namespace of the driver: `spark.kubernetes.namespace`.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The image of driver and executors: `spark.kubernetes.container.image`.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// An environment variable of the driver; may be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = label)]
    variables: Vec<(String, String)>,
    /// Refuse the submission while another one with the same name runs or waits in the same namespace. Only submissions with
    /// --unique-name are compared.
    #[arg(long)]
    unique_name: bool,
    /// A key that makes it safe to repeat the command: the same key and command line create one submission [default: a new
    /// key].
    #[arg(long, value_name = "KEY", value_parser = header_value)]
    idempotency_key: Option<HeaderValue>,
    /// Kill the submission if it isn't running after this time, such as 10m.
    #[arg(long, value_name = "TIME")]
    start_timeout: Option<Span>,
    /// Kill the submission if it is still running after this time, such as 2h.
    #[arg(long, value_name = "TIME")]
    run_timeout: Option<Span>,
    /// Time between SIGTERM and SIGKILL when the driver is killed, such as 30s.
    #[arg(long, value_name = "TIME")]
    kill_grace: Option<Span>,
    /// Maximum number of retries after failures that the application didn't cause, such as a lost node or an eviction.
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Maximum number of retries after failures of the application, such as an exit code other than 0 or too little memory.
    #[arg(long, value_name = "N")]
    application_retries: Option<u32>,
    /// A local file with Spark properties. All other options take precedence over it.
    #[arg(long, value_name = "FILE", help_heading = line::HEADING)]
    properties_file: Option<PathBuf>,
    #[command(flatten)]
    line: CommandLine,
    /// Paths of the command line that name no local file.
    #[arg(skip)]
    absent: Vec<String>,
}

impl Submit {
    pub(super) async fn run(mut self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let mut properties = request::properties(&self)?;
        self.absent = upload::local_files(&api, &mut self.line, &mut properties).await?;
        let body = request::of(&self, &properties).to_string();
        if self.dry_run {
            return self.show_dry_run(&api, body).await;
        }
        let answer = self.send(&api, body).await?;
        if answer.headers.contains_key("idempotency-replayed") {
            note("this key was used before: this is the existing submission");
        }
        let created = Seen::of("submitting", answer)?;
        warn(&created.submission.warnings);
        if !self.wait {
            match self.target.json() {
                true => screen::document(&created.body)?,
                false => screen::line(&clean::line(&created.submission.id))?,
            }
            return Ok(0);
        }
        if !self.target.json() {
            silently(screen::line(&clean::line(&created.submission.id)))?;
        }
        let id = &created.submission.id;
        let mut progress = Progress::from_attempt(created.submission.attempt);
        let end = follow(&api, id, None, None, async |submission| {
            progress.tell_retried(&api, submission).await;
            if let Some(line) = progress.line(submission) {
                note(&line);
            }
        });
        let seen = tokio::select! {
            seen = end => seen.inspect_err(|_| {
                note(&format!("{id} is not affected: run `sparkgate wait {id}` to wait for it again"));
            })?,
            Ok(()) = ctrl_c() => {
                note(&format!(
                    "{id} is not affected: run `sparkgate wait {id}` to wait for it again, `sparkgate logs -f {id}` to \
                     follow its log, or `sparkgate kill {id}` to end it"
                ));
                return Ok(INTERRUPTED);
            }
        };
        if self.target.json() {
            silently(screen::document(&seen.body))?;
        }
        why::tell_failure(&seen.submission);
        Ok(seen.submission.exit_status())
    }

    /// Sends the request. All retries have the same key, so that a lost response doesn't lead to a second submission.
    async fn send(&self, api: &Api, body: String) -> Result<Answer, Error> {
        let fresh = || HeaderValue::from_str(&Uuid::new_v4().to_string());
        let key = self.idempotency_key.clone().map_or_else(fresh, Ok);
        let key = key.map_err(|error| Error::Here(format!("generating an idempotency key: {error}")))?;
        let call = Call::post("submitting", &["submissions"], body).header("idempotency-key", key);
        api.send(&call).await.map_err(|error| self.in_its_words(error))
    }

    async fn show_dry_run(&self, api: &Api, body: String) -> Outcome {
        let call = Call::post("submitting (a dry run)", &["submissions"], body).query("dryRun", true);
        let answer = api.send(&call).await.map_err(|error| self.in_its_words(error))?;
        if self.target.json() {
            screen::document(&answer.body)?;
            return Ok(0);
        }
        let dry: DryRun = document::read(call.action(), &answer.body)?;
        warn(&dry.warnings);
        for AppliedDefault { key, value, origin } in &dry.defaults {
            note(&clean::line(&format!("default: {key}={value} ({origin})")));
        }
        screen::document(dry.manifest.get().as_bytes())?;
        Ok(0)
    }

    fn in_its_words(&self, error: Error) -> Error {
        match error {
            Error::Problem(problem) => {
                let mut problem = problem.with_words(self.line.words());
                if let (Some(absent), None) = (self.absent.first(), &problem.advice) {
                    problem.advice = Some(format!("there is no file {} on this machine", clean::line(absent)));
                }
                Error::Problem(Box::new(problem))
            }
            other => other,
        }
    }
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        note(&clean::line(&format!("warning: {warning}")));
    }
}

/// Ignores a closed standard output: a submission is followed even if its id can't be printed.
fn silently(written: Result<(), Error>) -> Result<(), Error> {
    written.or_else(|error| if error.is_silent() { Ok(()) } else { Err(error) })
}

/// The response of a dry run.
#[derive(Deserialize)]
struct DryRun {
    manifest: Box<RawValue>,
    #[serde(default)]
    defaults: Vec<AppliedDefault>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// A property that the request doesn't set.
#[derive(Deserialize)]
struct AppliedDefault {
    key: String,
    value: String,
    origin: String,
}

fn header_value(text: &str) -> Result<HeaderValue, &'static str> {
    let fine = !text.is_empty() && text.len() <= 255 && text.chars().all(|c| matches!(c, ' '..='~'));
    let value = HeaderValue::from_str(text).ok().filter(|_| fine);
    value.ok_or("expected 1 to 255 printable ASCII characters")
}
