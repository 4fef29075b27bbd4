//! The settings of the chart are those of `sparkgate serve`.

use std::{collections::BTreeSet, ffi::OsString};

use clap::CommandFactory;
use serde_json::{Map, Value, json};
use sparkgate::app::{Arguments, Cli};

use crate::chart::helm::{TENANTS, find, settings, settings_file, template, variables};

const SCHEMA: &str = include_str!("../../../charts/sparkgate/values.schema.json");

/// Returns the variables of `serve`, with those that all commands have.
fn of_serve() -> BTreeSet<String> {
    let program = Cli::command();
    let serve = program.find_subcommand("serve").unwrap();
    let arguments = program.get_arguments().chain(serve.get_arguments());
    arguments.filter_map(|argument| Some(argument.get_env()?.to_str()?.to_owned())).collect()
}

/// Returns a value for each setting of the chart's schema: its example, or its default.
fn examples() -> Map<String, Value> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let value =
        |setting: &Value| [&setting["examples"][0], &setting["default"]].into_iter().find(|v| !v.is_null()).cloned();
    let settings = schema["properties"]["settings"]["properties"].as_object().unwrap();
    let all = settings.iter().map(|(name, setting)| (name.clone(), value(setting).expect(name)));
    all.collect()
}

/// Lets the program read the variables and the file of settings of a Deployment.
fn read(objects: &[Value]) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), settings_file(objects)).unwrap();
    let mut line: Vec<OsString> = ["sparkgate", "config", "show", "--config"].map(Into::into).into();
    line.push(file.path().into());
    for (variable, value) in variables(find(objects, "Deployment", "sparkgate")) {
        let name = variable.strip_prefix("SPARKGATE_").map(|name| name.to_lowercase().replace('_', "-"));
        match name.as_deref() {
            None | Some("config-file") => {}
            Some("trusted-network") => line.push("--trusted-network".into()),
            Some("database-url") => line.push("--database-url=postgres://u@h/d".into()),
            Some(name) => line.push(format!("--{name}={value}").into()),
        }
    }
    let loaded = Arguments::new(line.clone()).load();
    assert!(loaded.is_ok(), "{line:?}\n{}{:?}", settings_file(objects), loaded.err());
}

#[test]
fn every_setting_of_the_program_is_one_of_the_chart() {
    let objects = template(&["--values", TENANTS]);
    let mut set: BTreeSet<String> =
        variables(find(&objects, "Deployment", "sparkgate")).into_keys().map(str::to_owned).collect();
    set.retain(|name| name.starts_with("SPARKGATE_"));
    // It is set instead of the files of TLS.
    set.insert("SPARKGATE_TRUSTED_NETWORK".to_owned());
    let variable = |name: String| format!("SPARKGATE_{}", name.replace('-', "_").to_uppercase());
    let in_file: BTreeSet<String> = examples().into_iter().map(|(name, _)| variable(name)).collect();
    assert!(set.is_disjoint(&in_file), "a variable precedes the file");
    set.extend(in_file);
    assert_eq!(set, of_serve());
}

#[test]
fn versions_are_those_of_the_program() {
    let chart: Value = serde_saphyr::from_str(include_str!("../../../charts/sparkgate/Chart.yaml")).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    let values: Value = serde_saphyr::from_str(include_str!("../../../charts/sparkgate/values.yaml")).unwrap();
    let program = Cli::command();
    let serve = program.find_subcommand("serve").unwrap();
    let version = serve.get_arguments().find(|argument| argument.get_long() == Some("spark-version")).unwrap();
    assert_eq!(version.get_default_values(), [values["spark"]["version"].as_str().unwrap()]);
}

#[test]
fn the_program_reads_an_example_of_every_setting() {
    let examples = examples();
    let values = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(values.path(), json!({"settings": examples}).to_string()).unwrap();
    let objects = template(&["--values", TENANTS, "--values", values.path().to_str().unwrap()]);
    assert_eq!(
        settings(&objects).into_keys().collect::<Vec<_>>(),
        examples.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    read(&objects);
}

#[test]
fn values_of_settings_are_written_as_the_program_reads_them() {
    let objects = template(&["--values", TENANTS]);
    read(&objects);
    let file = settings_file(&objects);
    for line in [
        "max-request-bodies = 134217728\n",
        "trusted-proxies = [\"10.0.0.0/8\",\"192.168.0.0/16\"]\n",
        "outcome-finalizer = true\n",
        "retention = \"off\"\n",
        "secret-pattern = \"^CORP_\\\\w\"\n",
    ] {
        assert!(file.contains(line), "{line}{file}");
    }
}

#[test]
fn jobs_have_the_log_of_the_gateway() {
    let objects = template(&["--values", TENANTS]);
    for job in ["sparkgate-migrations", "sparkgate-uninstall"] {
        let set = variables(find(&objects, "Job", job));
        assert_eq!(
            (set["SPARKGATE_LOG"], set["SPARKGATE_LOG_FORMAT"]),
            ("info,sparkgate::service=debug", "json"),
            "{job}"
        );
    }
}
