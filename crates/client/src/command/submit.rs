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
        for option in late_options(&self.line) {
            note(&clean::line(&format!("warning: {option} comes after the application, which gets it as an argument")));
        }
        let has_uploads = upload::local_files(&api, &mut request).await?;
        let call = |call: Call| if has_uploads { call.through_restarts() } else { call };
        let in_its_words = |error| in_words(error, &request);
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

/// Returns the arguments of the application that are spelt like options of this command.
fn late_options(line: &CommandLine) -> Vec<&str> {
    let command = Submit::augment_args(clap::Command::new("submit"));
    let is_option = |word: &&str| {
        let name = word.strip_prefix("--").map(|name| name.split('=').next().unwrap_or(name));
        name.is_some_and(|name| command.get_arguments().any(|option| option.get_long() == Some(name)))
    };
    line.parts().1.iter().skip(1).map(String::as_str).filter(is_option).collect()
}

/// Returns an error in the words of the command line.
fn in_words(error: Error, request: &Request) -> Error {
    match error {
        Error::Problem(problem) => Error::Problem(Box::new(problem.with_words(request.line.words()))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_after_the_application_are_noticed() {
        let line = |words: &[&str]| CommandLine::of(words.iter().map(|word| (*word).to_owned()).collect());
        let late = line(&["--name", "--wait", "job.py", "--wait", "--rows=10", "--output=x.csv", "--dry-run", "wait"]);
        assert_eq!(late_options(&late), ["--wait", "--output=x.csv", "--dry-run"]);
        assert!(late_options(&line(&["job.py"])).is_empty() && late_options(&line(&[])).is_empty());
    }
}
