//! The body of a submission: a spark-submit command line, which the gateway parses, or the request of a file, or both; and fields for
//! options that spark-submit doesn't have.

use std::{collections::BTreeMap, fs, path::Path};

use json_patch::merge;
use serde_json::{Map, Value, json};

use super::{Submit, line::CommandLine};
use crate::{command::request_file, error::Error, screen::note};
use sparkgate_spark::parse_properties;

/// The class whose arguments the gateway parses as a command line.
const COMMAND_LINE: &str = "org.apache.spark.deploy.SparkSubmit";
/// Where the classes are that Spark itself runs for other kinds of applications.
const SPARKS: &str = "org.apache.spark.deploy.";

/// A request before it is sent.
pub(super) struct Request {
    pub(super) body: Value,
    /// The command line in `appArgs`; without words, `body` has an application of its own.
    pub(super) line: CommandLine,
}

impl Request {
    /// Returns the request of a command.
    ///
    /// # Errors
    /// A file can't be read, or its application can't have options of spark-submit.
    pub(super) fn of(submit: &Submit) -> Result<Self, Error> {
        let environment = environment(|name| std::env::var(name).ok());
        let mut request = match &submit.request {
            Some(path) => {
                let mut body = environment_below(environment, request_file::read(path)?);
                let line = combined(&mut body, &submit.line)?;
                Self { body, line }
            }
            None => {
                let properties =
                    submit.properties_file.as_deref().map(read_properties).transpose()?.unwrap_or_default();
                let body = json!({
                    "mainClass": COMMAND_LINE,
                    "appResource": "",
                    "sparkProperties": properties,
                    "environmentVariables": environment,
                });
                Self { body, line: submit.line.clone() }
            }
        };
        merge(&mut request.body, &submit.options.patch());
        Ok(request)
    }

    /// Returns the body as it is sent.
    pub(super) fn body(&self) -> String {
        let mut body = self.body.clone();
        if !self.line.is_empty() {
            body["appArgs"] = json!(self.line.words());
        }
        body.to_string()
    }
}

/// Adds the variables that the body doesn't set. A body with a proxy user has an owner already.
fn environment_below(environment: Map<String, Value>, mut body: Value) -> Value {
    if body["proxyUser"].is_null() {
        let mut below = json!({ "environmentVariables": environment });
        merge(&mut below, &body);
        body = below;
    }
    body
}

/// Returns the command line of a request with the options and the application of another one, which precede those of the request. The
/// body's own application is moved into it. Empty if nothing precedes.
fn combined(body: &mut Value, line: &CommandLine) -> Result<CommandLine, Error> {
    let class = body["mainClass"].as_str().unwrap_or_default().to_owned();
    let of_body = match class.as_str() {
        COMMAND_LINE => words_of(&body["appArgs"])?,
        _ if line.is_empty() => return Ok(CommandLine::default()),
        other if other.starts_with(SPARKS) => {
            return Err(Error::Here(format!(
                "the request runs {other}, which can't have options of spark-submit: name the application itself in `appResource`"
            )));
        }
        _ => {
            let class = (!class.is_empty()).then(|| ["--class".to_owned(), class]);
            let resource = body["appResource"].as_str().map(str::to_owned);
            class.into_iter().flatten().chain(resource).chain(words_of(&body["appArgs"])?).collect()
        }
    };
    let of_body = CommandLine::of(of_body);
    let (first, own) = of_body.parts();
    let (options, application) = line.parts();
    let application = if application.is_empty() { own } else { application };
    let combined = CommandLine::of([first, options, application].concat());
    if let Some(body) = body.as_object_mut() {
        // These fields would precede the options.
        for (option, field) in [("name", "name"), ("proxy-user", "proxyUser")] {
            if line.has(option) {
                body.remove(field);
            }
        }
        body.insert("mainClass".to_owned(), COMMAND_LINE.into());
        body.insert("appResource".to_owned(), "".into());
        body.remove("appArgs");
    }
    Ok(combined)
}

/// Returns the arguments of a request as words: the gateway accepts numbers and booleans, too.
fn words_of(arguments: &Value) -> Result<Vec<String>, Error> {
    let wrong = || Error::Here("the request's `appArgs` is not a list of texts".to_owned());
    let list = match arguments {
        Value::Null => return Ok(Vec::new()),
        arguments => arguments.as_array().ok_or_else(wrong)?,
    };
    let word = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(wrong()),
    };
    list.iter().map(word).collect()
}

/// Reads a file of properties. Like spark-submit, ignores keys that aren't Spark's with a warning.
fn read_properties(path: &Path) -> Result<BTreeMap<String, String>, Error> {
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

/// Returns `SPARK_USER`, the owner of the submission. As in spark-submit, it is the variable, otherwise the account.
fn environment(variable: impl Fn(&str) -> Option<String>) -> Map<String, Value> {
    let user =
        ["SPARK_USER", "USER", "LOGNAME"].into_iter().find_map(|name| variable(name).filter(|set| !set.is_empty()));
    user.into_iter().map(|user| ("SPARK_USER".to_owned(), user.into())).collect()
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

    fn request(words: &[&str]) -> Result<Value, Error> {
        let submit = Cli::try_parse_from([&["submit"], words].concat()).unwrap().submit;
        Ok(serde_json::from_str(&Request::of(&submit)?.body()).unwrap())
    }

    fn body(words: &[&str]) -> Value {
        request(words).unwrap()
    }

    /// Returns the body of a command with a file.
    fn with_file(text: &str, words: &[&str]) -> Result<Value, Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let mut body = request(&[&["-f", file.path().to_str().unwrap()], words].concat())?;
        body.as_object_mut().unwrap().remove("environmentVariables");
        Ok(body)
    }

    #[test]
    fn a_file_is_sent_with_the_fields_of_the_options() {
        let text =
            "name: Pi\nappResource: local:///pi.py\nappArgs: [10]\nlabels: {team: a, tier: b}\nrunTimeoutSeconds: 60\n";
        let body = with_file(text, &["--label", "team=c", "--run-timeout", "2m", "--image", "spark:4"]).unwrap();
        assert_eq!(
            body,
            json!({"name": "Pi", "appResource": "local:///pi.py", "appArgs": [10], "labels": {"team": "c", "tier": "b"},
                "runTimeoutSeconds": 120, "sparkProperties": {"spark.kubernetes.container.image": "spark:4"}})
        );
    }

    #[test]
    fn options_of_spark_submit_precede_a_file() {
        let text = r#"{"name": "Pi", "mainClass": "a.B", "appResource": "local:///a.jar", "appArgs": [10, "x"],
            "sparkProperties": {"spark.executor.memory": "1g"}}"#;
        let expected = json!({"mainClass": COMMAND_LINE, "appResource": "", "sparkProperties": {"spark.executor.memory": "1g"},
            "appArgs": ["--class", "a.B", "--executor-memory", "2g", "--name", "Tau", "local:///a.jar", "10", "x"]});
        let options = ["--executor-memory", "2g", "--name", "Tau"];
        assert_eq!(with_file(text, &options).unwrap(), expected);
        let other = with_file(text, &["--class", "c.D", "local:///b.jar", "y"]).unwrap();
        assert_eq!(other["appArgs"], json!(["--class", "a.B", "--class", "c.D", "local:///b.jar", "y"]));
        assert_eq!(other["name"], "Pi");
        // A file that has a command line itself.
        let line = r#"{"mainClass": "org.apache.spark.deploy.SparkSubmit", "appArgs": ["--name", "Pi", "a.py", "1"]}"#;
        assert_eq!(
            with_file(line, &["--name", "Tau"]).unwrap()["appArgs"],
            json!(["--name", "Pi", "--name", "Tau", "a.py", "1"])
        );
        assert_eq!(with_file(line, &[]).unwrap()["appArgs"], json!(["--name", "Pi", "a.py", "1"]));
    }

    #[test]
    fn a_file_that_can_not_have_options_is_refused() {
        let runner = r#"{"mainClass": "org.apache.spark.deploy.PythonRunner", "appArgs": ["a.py", ""]}"#;
        assert!(with_file(runner, &[]).is_ok());
        let error = with_file(runner, &["--name", "x"]).unwrap_err().to_string();
        assert!(error.contains("PythonRunner"), "{error}");
        let error =
            with_file(r#"{"appResource": "a.py", "appArgs": [[1]]}"#, &["--name", "x"]).unwrap_err().to_string();
        assert!(error.contains("appArgs"), "{error}");
    }

    #[test]
    fn an_application_or_a_file_is_required() {
        let error = Cli::try_parse_from(["submit", "--class", "a.B"]).err().unwrap();
        assert_eq!(error.kind(), clap::error::ErrorKind::MissingRequiredArgument);
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
            Value::Object(environment(|name| set.get(name).cloned()))
        };
        assert_eq!(with(&[("USER", "alice"), ("SPARK_USER", "etl")]), json!({"SPARK_USER": "etl"}));
        assert_eq!(with(&[("SPARK_USER", ""), ("USER", "alice")]), json!({"SPARK_USER": "alice"}));
        assert_eq!(with(&[]), json!({}));
    }
}
