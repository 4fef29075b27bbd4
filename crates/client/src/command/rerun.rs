//! `sparkgate rerun`.

mod change;

use std::path::PathBuf;

use clap::Args;
use json_patch::merge;
use serde_json::{Value, json};

use super::{
    Outcome, created, label, request_file,
    request_options::{RequestOptions, texts},
    wait::EXIT_CODES,
};
use crate::{
    api::{Api, Call},
    error::Error,
    named::Named,
    options::Target,
    problem::Problem,
};
use change::{Change, Path};

/// What a problem says of a value that the gateway didn't store.
const NOT_STORED: &str = "was not stored";

#[derive(Debug, Args)]
#[command(
    override_usage = "sparkgate rerun [OPTIONS] ID... [-- ARGS...]",
    after_help = format!(
        "PATH is a field of `POST /v1/submissions`, or a key in one: name, maxRetries.application,\n\
         sparkProperties.spark.executor.memory. Options precede --set and --unset, which precede --patch.\n\n{EXIT_CODES}"
    )
)]
pub struct Rerun {
    #[command(flatten)]
    target: Target,
    /// The ids of the submissions, or their beginnings; @latest is the newest one.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Named>,
    /// Wait for the end, and print state changes and failed attempts. The exit code is the driver's.
    #[arg(short = 'f', long, visible_alias = "watch")]
    wait: bool,
    /// Change a field of the request; may be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<Change>,
    /// Remove a field of the request, so that the gateway's default applies; may be repeated.
    #[arg(long = "unset", value_name = "PATH")]
    unsets: Vec<Path>,
    /// Changes as a JSON merge patch of the request, in JSON or YAML; - is standard input.
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// The application's name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A Spark property; may be repeated.
    #[arg(short, long = "conf", value_name = "KEY=VALUE", value_parser = label)]
    properties: Vec<(String, String)>,
    #[command(flatten)]
    options: RequestOptions,
    /// The application's arguments, instead of the earlier ones.
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

impl Rerun {
    pub(super) async fn run(self) -> Outcome {
        if self.wait && self.ids.len() > 1 {
            return Err(Error::Here("--wait follows one submission: give one id".to_owned()));
        }
        let patch = self.patch()?.to_string();
        let api = Api::new(&self.target.gateway)?;
        let mut code = 0;
        for id in Named::all_resolved(&self.ids, &api).await? {
            let call =
                Call::post(format!("submitting {id} again"), &["submissions", id.as_str(), "rerun"], patch.clone());
            let call = call.header("idempotency-key", self.options.key()?);
            let answer = api.send(&call).await.map_err(with_paths)?;
            code = created::show(&api, &self.target, answer, self.wait).await?;
        }
        Ok(code)
    }

    /// Returns the merge patch of the request.
    fn patch(&self) -> Result<Value, Error> {
        let mut patch = self.patch.as_deref().map_or_else(|| Ok(json!({})), request_file::read)?;
        let changes = self.sets.iter().map(Change::patch).chain(self.unsets.iter().map(|path| path.patch(Value::Null)));
        // A merge would apply the nulls instead of keeping them.
        changes.for_each(|change| change::combine(&mut patch, change));
        let mut own = self.options.patch();
        if let Some(name) = &self.name {
            own["name"] = json!(name);
        }
        if let Some(properties) = texts(&self.properties) {
            merge(&mut own, &json!({ "sparkProperties": properties }));
        }
        if !self.arguments.is_empty() {
            own["appArgs"] = json!(self.arguments);
        }
        change::combine(&mut patch, own);
        Ok(patch)
    }
}

/// Names the fields of a problem as --set does.
fn with_paths(error: Error) -> Error {
    let Error::Problem(problem) = error else { return error };
    let mut problem: Problem = *problem;
    for error in &mut problem.errors {
        error.pointer = error.pointer.take().map(|pointer| Path::from_pointer(&pointer).unwrap_or(pointer));
    }
    if problem.errors.iter().any(|error| error.detail.contains(NOT_STORED)) {
        problem.advice =
            Some("give the values again with --set PATH=VALUE, or leave them out with --unset PATH".to_owned());
    }
    Error::Problem(Box::new(problem))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        rerun: Rerun,
    }

    fn patch(words: &[&str]) -> Value {
        let all = [&["rerun", "driver-20260102030405-0001"], words].concat();
        Cli::try_parse_from(all).unwrap().rerun.patch().unwrap()
    }

    #[test]
    fn options_precede_set_and_set_precedes_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "name: a\nlabels: {team: a, tier: null}\nsparkProperties: {spark.x: '1'}\n")
            .unwrap();
        let words = [
            "--patch",
            file.path().to_str().unwrap(),
            "--set",
            "labels.team=b",
            "--set",
            "sparkProperties.spark.executor.memory=2g",
            "--unset",
            "runTimeoutSeconds",
            "--name",
            "c",
            "--conf",
            "spark.x=2",
            "--label",
            "owner=d",
            "--",
            "10",
            "--fast",
        ];
        assert_eq!(
            patch(&words),
            json!({"name": "c", "labels": {"team": "b", "tier": null, "owner": "d"}, "runTimeoutSeconds": null,
                "sparkProperties": {"spark.x": "2", "spark.executor.memory": "2g"}, "appArgs": ["10", "--fast"]})
        );
        assert_eq!(patch(&[]), json!({}));
    }
}
