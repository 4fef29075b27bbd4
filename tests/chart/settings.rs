//! The settings of the chart are those of `sparkgate serve`.

use std::collections::BTreeSet;

use clap::CommandFactory;
use serde_json::Value;
use sparkgate::app::{Arguments, Cli};

use crate::helm::{TENANTS, find, template, variables};

/// The settings that a pod doesn't need: it takes the account that Kubernetes gives it.
const OUTSIDE_OF_A_CLUSTER: [&str; 2] = ["SPARKGATE_KUBECONFIG", "SPARKGATE_CONTEXT"];

/// Returns the variables of `serve`, with those that all commands have.
fn of_serve() -> BTreeSet<String> {
    let program = Cli::command();
    let serve = program.find_subcommand("serve").unwrap();
    let arguments = program.get_arguments().chain(serve.get_arguments());
    arguments.filter_map(|argument| Some(argument.get_env()?.to_str()?.to_owned())).collect()
}

#[test]
fn every_setting_of_the_program_is_one_of_the_chart() {
    let objects = template(&["--values", TENANTS]);
    let set: BTreeSet<&str> = variables(find(&objects, "Deployment", "sparkgate")).into_keys().collect();
    let set: BTreeSet<String> =
        set.into_iter().filter(|name| name.starts_with("SPARKGATE_")).map(str::to_owned).collect();
    let mut expected = of_serve();
    expected.retain(|name| !OUTSIDE_OF_A_CLUSTER.contains(&name.as_str()));
    // It is set instead of the files of TLS.
    expected.remove("SPARKGATE_TRUSTED_NETWORK");
    let lacking: Vec<_> = expected.difference(&set).collect();
    assert!(lacking.is_empty(), "add to `settings` of values.schema.json and ci/tenants.yaml: {lacking:?}");
    let unknown: Vec<_> = set.difference(&expected).collect();
    assert!(unknown.is_empty(), "the program has no such settings: {unknown:?}");
}

#[test]
fn versions_are_those_of_the_program() {
    let chart: Value = serde_saphyr::from_str(include_str!("../../charts/sparkgate/Chart.yaml")).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    let values: Value = serde_saphyr::from_str(include_str!("../../charts/sparkgate/values.yaml")).unwrap();
    let program = Cli::command();
    let serve = program.find_subcommand("serve").unwrap();
    let version = serve.get_arguments().find(|argument| argument.get_long() == Some("spark-version")).unwrap();
    assert_eq!(version.get_default_values(), [values["spark"]["version"].as_str().unwrap()]);
}

#[test]
fn every_setting_of_the_schema_is_tried() {
    let schema: Value = serde_json::from_str(include_str!("../../charts/sparkgate/values.schema.json")).unwrap();
    let values: Value = serde_saphyr::from_str(include_str!("../../charts/sparkgate/ci/tenants.yaml")).unwrap();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&schema["properties"]["settings"]["properties"]), names(&values["settings"]));
}

#[test]
fn values_of_settings_are_written_as_the_program_reads_them() {
    let objects = template(&["--values", TENANTS]);
    let set = variables(find(&objects, "Deployment", "sparkgate"));
    for (name, value) in [
        ("SPARKGATE_MAX_REQUEST_BODIES", "134217728"),
        ("SPARKGATE_TRUSTED_PROXIES", "10.0.0.0/8,192.168.0.0/16"),
        ("SPARKGATE_OUTCOME_FINALIZER", "true"),
        ("SPARKGATE_RETENTION", "off"),
    ] {
        assert_eq!(set[name], value, "{name}");
    }
    let serve = Cli::command().find_subcommand("serve").unwrap().clone();
    let mut line = vec!["serve".to_owned()];
    for argument in serve.get_arguments() {
        let name = argument.get_long().unwrap_or_default();
        let variable = format!("SPARKGATE_{}", name.replace('-', "_").to_uppercase());
        if name == "database-url" {
            line.push("--database-url=postgres://u@h/d".to_owned());
        } else if let Some(value) = set.get(variable.as_str()) {
            line.push(format!("--{name}={value}"));
        }
    }
    serve.try_get_matches_from(line).unwrap();
}

#[test]
fn the_file_of_settings_is_one_that_the_program_reads() {
    let objects = template(&["--values", TENANTS]);
    let text = find(&objects, "ConfigMap", "sparkgate-config")["data"]["sparkgate.toml"].as_str().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let line = ["sparkgate", "config", "show", "--config", file.path().to_str().unwrap()];
    let loaded = Arguments::new(line.map(Into::into)).load();
    assert!(loaded.is_ok(), "{text}{:?}", loaded.err());
    // A file is as long as its keys in the values.
    let values: Value = serde_saphyr::from_str(include_str!("../../charts/sparkgate/ci/tenants.yaml")).unwrap();
    assert_eq!(text.lines().count(), values["config"].as_object().unwrap().len());
}
