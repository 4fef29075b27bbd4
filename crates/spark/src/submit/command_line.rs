//! A spark-submit command line in `appArgs`, with which `PySpark` applications are submitted to Spark's REST server.
//! `mainClass` is then `org.apache.spark.deploy.SparkSubmit`. The command line is parsed here, so that no second JVM is
//! needed for it.
//!
//! The line is parsed as `bin/spark-submit` does: first by its launcher (`SparkSubmitCommandBuilder`), then by
//! `SparkSubmitArguments`. The request's `sparkProperties` come first, as if they were `--conf` options before the line.

mod grammar;

use std::collections::BTreeMap;

use super::{
    master, resource, uris,
    validate::{self, SPARK_SUBMIT},
};
use crate::{refusal::Refusal, request::CreateSubmissionRequest, version::SparkVersion};
use grammar::{Meaning, Word, Words};

/// Returns whether `appArgs` is a command line.
pub fn has_command_line(request: &CreateSubmissionRequest) -> bool {
    request.main_class == SPARK_SUBMIT
}

/// Returns the request that a command line in `appArgs` stands for: class, resource, arguments, properties and proxy user are
/// taken from the line. Any other request is returned unchanged, including the result of this function.
///
/// # Errors
/// A [`Refusal`] that names the invalid argument (`appArgs[3]`), with spark-submit's message where it has one.
pub fn expand_command_line(
    request: CreateSubmissionRequest,
    version: SparkVersion,
) -> Result<CreateSubmissionRequest, Refusal> {
    if !has_command_line(&request) {
        return Ok(request);
    }
    let mut line = CommandLine::new(version);
    let mut words = Words::new(&request.app_args, version);
    let mut found = None;
    while let Some(word) = words.next()? {
        match word {
            Word::Option { at, name, meaning, value } => line.apply(&field(at), name, meaning, value)?,
            Word::Resource { at, text } => {
                found = Some((field(at), text));
                break;
            }
        }
    }
    if let Some((at, class)) = &line.class {
        validate::runs_in_cluster(at, class, version)?;
    }
    let (at, app_resource) = found.ok_or_else(|| {
        let reason = "Missing application resource. Name the .py, .R or jar after the options.";
        Refusal::field("appArgs", reason)
    })?;
    if !resource::is_internal(app_resource) {
        uris::remote(&at, app_resource).map_err(|mut refusal| {
            if app_resource.ends_with("spark-submit") {
                refusal.reason += " A command line in appArgs begins after `spark-submit`.";
            }
            refusal
        })?;
    }
    Ok(line.into_request(&request, app_resource, words.rest()))
}

/// Returns the options of a command line that a user may rely on and that have no effect on Kubernetes, each with its last value.
pub fn options_without_effect(
    request: &CreateSubmissionRequest,
    version: SparkVersion,
) -> BTreeMap<&'static str, String> {
    let mut words = Words::new(&request.app_args, version);
    let mut found = BTreeMap::new();
    while has_command_line(request)
        && let Ok(Some(Word::Option { name, meaning, value, .. })) = words.next()
    {
        if matches!((name, meaning), ("--queue" | "--supervise", Meaning::Nothing)) {
            found.insert(name, value.to_owned());
        }
    }
    found
}

fn field(at: usize) -> String {
    format!("appArgs[{at}]")
}

/// The options of a command line.
#[derive(Debug)]
struct CommandLine {
    version: SparkVersion,
    /// `--conf`, and the options that the launcher turns into `--conf`: the last one wins.
    conf: BTreeMap<String, String>,
    /// Options that override `--conf`, by their property.
    options: BTreeMap<&'static str, String>,
    class: Option<(String, String)>,
    proxy_user: Option<String>,
}

impl CommandLine {
    fn new(version: SparkVersion) -> Self {
        Self { version, conf: BTreeMap::new(), options: BTreeMap::new(), class: None, proxy_user: None }
    }

    fn apply(&mut self, at: &str, name: &str, meaning: Meaning, value: &str) -> Result<(), Refusal> {
        match meaning {
            Meaning::Conf => {
                let invalid = || Refusal::field(at, format!("Invalid argument to --conf: {value}"));
                let (key, value) = value.split_once('=').ok_or_else(invalid)?;
                self.conf.insert(key.to_owned(), value.to_owned());
            }
            Meaning::ConfOf(key) => {
                self.conf.insert(key.to_owned(), value.to_owned());
            }
            Meaning::Property(key) => {
                self.options.insert(key, value.to_owned());
            }
            Meaning::Uris(key) => {
                self.options.insert(key, uris::resolve_option(at, value)?);
            }
            Meaning::Master => {
                let in_its_words = |refusal: Refusal| Refusal::field(at, refusal.reason);
                master::kubernetes(Some(value), self.version).map_err(in_its_words)?;
                self.options.insert("spark.master", value.to_owned());
            }
            Meaning::Class => self.class = Some((at.to_owned(), value.to_owned())),
            Meaning::ProxyUser => self.proxy_user = Some(value.to_owned()),
            // Every driver here runs in cluster mode.
            Meaning::DeployMode if ["client", "cluster"].contains(&value) => {}
            Meaning::DeployMode => {
                return Err(Refusal::field(at, "--deploy-mode must be either \"client\" or \"cluster\""));
            }
            // Validated, but without effect on Kubernetes.
            Meaning::TotalExecutorCores if validate::is_count(value) => {}
            Meaning::TotalExecutorCores => return Err(Refusal::field(at, validate::TOTAL_EXECUTOR_CORES)),
            Meaning::Nothing => {}
            Meaning::Refused(reason) => return Err(Refusal::field(at, format!("{name}: {reason}"))),
        }
        Ok(())
    }

    fn into_request(
        self,
        request: &CreateSubmissionRequest,
        resource: &str,
        args: &[String],
    ) -> CreateSubmissionRequest {
        let mut spark_properties = request.spark_properties.clone();
        spark_properties.extend(self.conf);
        spark_properties.extend(self.options.into_iter().map(|(key, value)| (key.to_owned(), value)));
        CreateSubmissionRequest {
            main_class: self.class.map_or_else(String::new, |(_, class)| class),
            app_resource: resource.to_owned(),
            app_args: args.to_vec(),
            spark_properties,
            proxy_user: self.proxy_user.or_else(|| request.proxy_user.clone()),
            ..request.clone()
        }
    }
}

#[cfg(test)]
mod tests;
