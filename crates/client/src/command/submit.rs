//! `sparkgate submit`.

mod globs;
mod line;
mod local;
mod request;
mod upload;

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Outcome, created, request_options::RequestOptions, wait::EXIT_CODES};
use crate::{
    api::{Api, Call},
    clean, document,
    error::Error,
    options::Target,
    screen::{self, note},
};
use line::CommandLine;
use request::Request;

#[derive(Debug, Args)]
#[command(
    override_usage = "sparkgate submit [OPTIONS] APP [ARGS]...\n       sparkgate submit [OPTIONS] --request FILE [APP [ARGS]...]",
    after_help = format!("Options come before APP; all words after it are arguments of the application.\n\n{EXIT_CODES}"),
    group(ArgGroup::new("what").args(["application", "request"]).required(true).multiple(true))
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
    /// A request as JSON or YAML, with the fields of `POST /v1/submissions`; - is standard input. Options and APP override it. Local
    /// files that it names are uploaded; relative paths are relative to the current directory.
    #[arg(short = 'f', long, value_name = "FILE")]
    request: Option<PathBuf>,
    #[command(flatten)]
    options: RequestOptions,
    /// A local file with Spark properties. All other options take precedence over it.
    #[arg(long, value_name = "FILE", conflicts_with = "request", help_heading = line::HEADING)]
    properties_file: Option<PathBuf>,
    #[command(flatten)]
    line: CommandLine,
}

impl Submit {
    pub(super) async fn run(self) -> Outcome {
        let api = Api::new(&self.target.gateway)?;
        let mut request = Request::of(&self)?;
        let uploaded = upload::local_files(&api, &mut request).await?;
        let call = |call: Call| if uploaded.is_any { call.through_restarts() } else { call };
        let in_its_words = |error| in_words(error, &request, &uploaded.absent);
        if self.dry_run {
            let call =
                call(Call::post("submitting (a dry run)", &["submissions"], request.body())).query("dryRun", true);
            let answer = api.send(&call).await.map_err(in_its_words)?;
            return self.show_dry_run(call.action(), &answer.body);
        }
        let call = call(Call::post("submitting", &["submissions"], request.body()));
        let call = call.header("idempotency-key", self.options.key()?);
        let answer = api.send(&call).await.map_err(in_its_words)?;
        created::show(&api, &self.target, answer, self.wait).await
    }

    fn show_dry_run(&self, action: &str, body: &[u8]) -> Outcome {
        if self.target.is_document() {
            self.target.document(body)?;
            return Ok(0);
        }
        let dry: DryRun = document::read(action, body)?;
        created::warn(&dry.warnings);
        for AppliedDefault { key, value, origin } in &dry.defaults {
            note(&clean::line(&format!("default: {key}={value} ({origin})")));
        }
        screen::document(dry.manifest.get().as_bytes())?;
        Ok(0)
    }
}

/// Returns an error in the words of the command line.
fn in_words(error: Error, request: &Request, absent: &[String]) -> Error {
    match error {
        Error::Problem(problem) => {
            let mut problem = problem.with_words(request.line.words());
            if let (Some(absent), None) = (absent.first(), &problem.advice) {
                problem.advice = Some(format!("there is no file {} on this machine", clean::line(absent)));
            }
            Error::Problem(Box::new(problem))
        }
        other => other,
    }
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
