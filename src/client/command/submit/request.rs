//! The body of a submission: a spark-submit command line for the gateway to read, and what spark-submit has no words for.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use super::Submit;
use crate::{
    client::{error::Error, screen::note, span::Span},
    spark::parse_properties,
};

/// The class whose arguments the gateway reads as a command line.
const COMMAND_LINE: &str = "org.apache.spark.deploy.SparkSubmit";

pub(super) fn of(submit: &Submit) -> Result<Value, Error> {
    let labels: BTreeMap<&str, &str> =
        submit.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut body = json!({
        "mainClass": COMMAND_LINE,
        "appResource": "",
        "appArgs": submit.line.words(),
        "sparkProperties": properties(submit)?,
        "environmentVariables": environment(|name| std::env::var(name).ok()),
    });
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body[name] = value;
        }
    };
    set("labels", (!labels.is_empty()).then(|| json!(labels)));
    set("uniqueName", submit.unique_name.then_some(json!(true)));
    set("startTimeoutSeconds", submit.start_timeout.map(seconds));
    set("runTimeoutSeconds", submit.run_timeout.map(seconds));
    set("killGraceSeconds", submit.kill_grace.map(seconds));
    let retries = [("infrastructure", submit.retries), ("application", submit.application_retries)];
    let retries: BTreeMap<&str, u32> = retries.into_iter().filter_map(|(kind, most)| Some((kind, most?))).collect();
    set("maxRetries", (!retries.is_empty()).then(|| json!(retries)));
    Ok(body)
}

fn seconds(span: Span) -> Value {
    json!(span.seconds())
}

/// The properties of `--properties-file`. spark-submit passes over keys that aren't Spark's, with a warning.
fn properties(submit: &Submit) -> Result<BTreeMap<String, String>, Error> {
    let Some(path) = &submit.properties_file else { return Ok(BTreeMap::new()) };
    let text = fs::read_to_string(path)
        .map_err(|error| Error::Here(format!("reading the properties from {}: {error}", path.display())))?;
    let mut properties = parse_properties(&text);
    properties.retain(|key, _| {
        let is_sparks = key.starts_with("spark.");
        if !is_sparks {
            note(&format!("{}: {key} is passed over: it doesn't begin with spark.", path.display()));
        }
        is_sparks
    });
    Ok(properties)
}

/// `SPARK_USER` as spark-submit takes it: the variable, else the account. It is whom the submission belongs to.
fn environment(variable: impl Fn(&str) -> Option<String>) -> Value {
    let user =
        ["SPARK_USER", "USER", "LOGNAME"].into_iter().find_map(|name| variable(name).filter(|set| !set.is_empty()));
    user.map_or_else(|| json!({}), |user| json!({ "SPARK_USER": user }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        submit: Submit,
    }

    fn body(words: &[&str]) -> Value {
        of(&Cli::try_parse_from([&["submit"], words].concat()).unwrap().submit).unwrap()
    }

    #[test]
    fn what_spark_submit_has_no_words_for_is_in_fields_of_its_own() {
        let all = [
            "--label",
            "team=data",
            "--label",
            "a=b=c",
            "--unique-name",
            "--start-timeout",
            "10m",
            "--run-timeout",
            "2h",
            "--kill-grace",
            "30s",
            "--retries",
            "2",
            "--application-retries",
            "1",
            "--name",
            "Pi",
            "app.py",
            "--wait",
        ];
        let mut body_of_all = body(&all);
        body_of_all["environmentVariables"] = json!({});
        assert_eq!(
            body_of_all,
            json!({"mainClass": COMMAND_LINE, "appResource": "", "appArgs": ["--name", "Pi", "app.py", "--wait"],
                "sparkProperties": {}, "environmentVariables": {}, "labels": {"team": "data", "a": "b=c"},
                "uniqueName": true, "startTimeoutSeconds": 600, "runTimeoutSeconds": 7200, "killGraceSeconds": 30,
                "maxRetries": {"infrastructure": 2, "application": 1}})
        );
        let bare = body(&["app.py"]);
        let fields: Vec<_> = bare.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["appArgs", "appResource", "environmentVariables", "mainClass", "sparkProperties"]);
    }

    #[test]
    fn a_properties_file_is_read_here() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "spark.executor.memory 2g\nmine=1\n").unwrap();
        let body = body(&["--properties-file", file.path().to_str().unwrap(), "app.py"]);
        assert_eq!(body["sparkProperties"], json!({"spark.executor.memory": "2g"}));
    }

    #[test]
    fn a_submission_belongs_to_the_one_who_sends_it() {
        let with = |set: &[(&str, &str)]| {
            let set: BTreeMap<String, String> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            environment(|name| set.get(name).cloned())
        };
        assert_eq!(with(&[("USER", "alice"), ("SPARK_USER", "etl")]), json!({"SPARK_USER": "etl"}));
        assert_eq!(with(&[("SPARK_USER", ""), ("USER", "alice")]), json!({"SPARK_USER": "alice"}));
        assert_eq!(with(&[]), json!({}));
    }
}
