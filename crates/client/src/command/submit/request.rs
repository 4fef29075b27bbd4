//! The body of a submission: a spark-submit command line, which the gateway parses, and fields for options that
//! spark-submit doesn't have.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use super::Submit;
use crate::{error::Error, screen::note, span::Span};
use sparkgate_spark::parse_properties;

/// The class whose arguments the gateway parses as a command line.
const COMMAND_LINE: &str = "org.apache.spark.deploy.SparkSubmit";

pub(super) fn of(submit: &Submit, properties: &BTreeMap<String, String>) -> Value {
    let labels: BTreeMap<&str, &str> =
        submit.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut body = json!({
        "mainClass": COMMAND_LINE,
        "appResource": "",
        "appArgs": submit.line.words(),
        "sparkProperties": properties,
        "environmentVariables": environment(|name| std::env::var(name).ok(), &submit.variables),
    });
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body[name] = value;
        }
    };
    set("sparkVersion", submit.spark_version.clone().map(Value::from));
    set("labels", (!labels.is_empty()).then(|| json!(labels)));
    set("clientId", submit.client_id.clone().map(Value::from));
    set("uniqueName", submit.unique_name.then_some(json!(true)));
    set("startTimeoutSeconds", submit.start_timeout.map(seconds));
    set("runTimeoutSeconds", submit.run_timeout.map(seconds));
    set("killGraceSeconds", submit.kill_grace.map(seconds));
    let retries = [("infrastructure", submit.retries), ("application", submit.application_retries)];
    let retries: BTreeMap<&str, u32> = retries.into_iter().filter_map(|(kind, most)| Some((kind, most?))).collect();
    set("maxRetries", (!retries.is_empty()).then(|| json!(retries)));
    body
}

fn seconds(span: Span) -> Value {
    json!(span.seconds())
}

/// Returns the properties that precede the command line: those of `--properties-file`, and those with an option of their own.
pub(super) fn properties(submit: &Submit) -> Result<BTreeMap<String, String>, Error> {
    let mut properties = match &submit.properties_file {
        Some(path) => of_file(path)?,
        None => BTreeMap::new(),
    };
    for (key, value) in
        [("spark.kubernetes.namespace", &submit.namespace), ("spark.kubernetes.container.image", &submit.image)]
    {
        if let Some(value) = value {
            properties.insert(key.to_owned(), value.clone());
        }
    }
    Ok(properties)
}

/// Reads a file of properties. Like spark-submit, ignores keys that aren't Spark's with a warning.
fn of_file(path: &Path) -> Result<BTreeMap<String, String>, Error> {
    let text = fs::read_to_string(path)
        .map_err(|error| Error::Here(format!("reading the properties from {}: {error}", path.display())))?;
    let mut properties = parse_properties(&text);
    properties.retain(|key, _| {
        let is_sparks = key.starts_with("spark.");
        if !is_sparks {
            note(&format!("{}: {key} is ignored: it doesn't begin with spark.", path.display()));
        }
        is_sparks
    });
    Ok(properties)
}

/// Returns the variables of the driver: those that are given, and `SPARK_USER`, the owner of the submission. As in spark-submit, it is
/// the variable, otherwise the account.
fn environment(variable: impl Fn(&str) -> Option<String>, given: &[(String, String)]) -> Value {
    let user =
        ["SPARK_USER", "USER", "LOGNAME"].into_iter().find_map(|name| variable(name).filter(|set| !set.is_empty()));
    let user = user.map(|user| ("SPARK_USER".to_owned(), user));
    user.into_iter().chain(given.iter().cloned()).collect::<BTreeMap<_, _>>().into_iter().collect()
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
        let submit = Cli::try_parse_from([&["submit"], words].concat()).unwrap().submit;
        of(&submit, &properties(&submit).unwrap())
    }

    #[test]
    fn namespace_image_and_variables_have_options_of_their_own() {
        let body = body(&[
            "--image",
            "spark:4",
            "-n",
            "etl",
            "--env",
            "A=b=c",
            "--env",
            "SPARK_USER=bob",
            "--client-id",
            "x",
            "a.py",
        ]);
        let expected = json!({"spark.kubernetes.container.image": "spark:4", "spark.kubernetes.namespace": "etl"});
        assert_eq!(body["sparkProperties"], expected);
        assert_eq!(body["environmentVariables"], json!({"A": "b=c", "SPARK_USER": "bob"}));
        assert_eq!((&body["clientId"], &body["appArgs"]), (&json!("x"), &json!(["a.py"])));
    }

    #[test]
    fn options_that_spark_submit_lacks_are_sent_as_fields() {
        let all = [
            "--label",
            "team=data",
            "--label",
            "a=b=c",
            "--unique-name",
            "--spark-version",
            "4.1",
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
                "sparkProperties": {}, "environmentVariables": {}, "labels": {"team": "data", "a": "b=c"}, "sparkVersion": "4.1",
                "uniqueName": true, "startTimeoutSeconds": 600, "runTimeoutSeconds": 7200, "killGraceSeconds": 30,
                "maxRetries": {"infrastructure": 2, "application": 1}})
        );
        let bare = body(&["app.py"]);
        let fields: Vec<_> = bare.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["appArgs", "appResource", "environmentVariables", "mainClass", "sparkProperties"]);
    }

    #[test]
    fn properties_file_is_read_by_the_client() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "spark.executor.memory 2g\nmine=1\n").unwrap();
        let body = body(&["--properties-file", file.path().to_str().unwrap(), "app.py"]);
        assert_eq!(body["sparkProperties"], json!({"spark.executor.memory": "2g"}));
    }

    #[test]
    fn owner_is_spark_user_or_the_account() {
        let with = |set: &[(&str, &str)]| {
            let set: BTreeMap<String, String> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            environment(|name| set.get(name).cloned(), &[])
        };
        assert_eq!(with(&[("USER", "alice"), ("SPARK_USER", "etl")]), json!({"SPARK_USER": "etl"}));
        assert_eq!(with(&[("SPARK_USER", ""), ("USER", "alice")]), json!({"SPARK_USER": "alice"}));
        assert_eq!(with(&[]), json!({}));
    }
}
