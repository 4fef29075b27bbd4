//! The body of a request for a batch, and its errors in the words of Livy's fields.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;

use sparkgate_service::SubmissionOptions;
use sparkgate_spark::{CreateSubmissionRequest, SparkVersion, rest::refused_properties};
use sparkgate_submission::Wire;
use sparkgate_web::{
    json::{Text, object, read as read_json},
    problem::{Code, Problem, pointer::pointer},
};

/// Livy's request. Numbers may be texts, and values of `conf` numbers or booleans.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NewBatch {
    file: Option<Text>,
    proxy_user: Option<Text>,
    class_name: Option<Text>,
    args: Vec<Text>,
    jars: Vec<Text>,
    py_files: Vec<Text>,
    files: Vec<Text>,
    driver_memory: Option<Text>,
    driver_cores: Option<Text>,
    executor_memory: Option<Text>,
    executor_cores: Option<Text>,
    num_executors: Option<Text>,
    archives: Vec<Text>,
    /// For YARN. In a tenant with queues it names one of these.
    queue: Option<Text>,
    name: Option<Text>,
    conf: BTreeMap<String, Text>,
}

/// A batch to submit.
#[derive(Debug)]
pub(super) struct ParsedBatch {
    pub(super) request: CreateSubmissionRequest,
    pub(super) options: SubmissionOptions,
}

/// Parses the body; values are those of a Spark release. The problem names all fields that can't be used.
pub(super) fn parse(body: &[u8], do_as: Option<String>, version: SparkVersion) -> Result<ParsedBatch, Problem> {
    let (batch, mut errors) = read_json::<NewBatch>(object(body)?, "a batch");
    let Some(batch) = batch.filter(|_| errors.is_empty()) else {
        return Err(Problem::for_fields(Code::InvalidRequest, errors));
    };
    if batch.file.as_ref().is_none_or(|Text(file)| file.trim().is_empty()) {
        return Err(Problem::field("#/file".to_owned(), "the application's file is required"));
    }
    let (request, options) = batch.into_parts(do_as);
    for refusal in refused_properties(&request.spark_properties, version) {
        errors.extend(Problem::field(pointer(&refusal.field), refusal.reason).errors);
    }
    if errors.is_empty() {
        Ok(ParsedBatch { request, options })
    } else {
        Err(Problem::for_fields(Code::InvalidRequest, errors))
    }
}

impl NewBatch {
    fn into_parts(self, do_as: Option<String>) -> (CreateSubmissionRequest, SubmissionOptions) {
        let text = |text: Option<Text>| text.map(|Text(text)| text).filter(|text| !text.is_empty());
        let texts = |texts: Vec<Text>| texts.into_iter().map(|Text(text)| text).collect::<Vec<_>>();
        let mut properties: BTreeMap<String, String> =
            self.conf.into_iter().map(|(key, Text(value))| (key, value)).collect();
        let name = text(self.name);
        for (key, value) in [
            ("spark.driver.memory", text(self.driver_memory)),
            ("spark.driver.cores", text(self.driver_cores)),
            ("spark.executor.memory", text(self.executor_memory)),
            ("spark.executor.cores", text(self.executor_cores)),
            ("spark.executor.instances", text(self.num_executors)),
            ("spark.app.name", name.clone()),
        ] {
            if let Some(value) = value {
                properties.insert(key.to_owned(), value);
            }
        }
        // Those of `conf` are added, as Livy does.
        for (key, mut uris) in [
            ("spark.jars", texts(self.jars)),
            ("spark.submit.pyFiles", texts(self.py_files)),
            ("spark.files", texts(self.files)),
            ("spark.archives", texts(self.archives)),
        ] {
            if !uris.is_empty() {
                uris.extend(properties.remove(key).filter(|before| !before.is_empty()));
                properties.insert(key.to_owned(), uris.join(","));
            }
        }
        let request = CreateSubmissionRequest {
            app_resource: text(self.file).unwrap_or_default(),
            main_class: text(self.class_name).unwrap_or_default(),
            app_args: texts(self.args),
            spark_properties: properties,
            proxy_user: do_as.filter(|user| !user.is_empty()).or_else(|| text(self.proxy_user)),
            ..CreateSubmissionRequest::default()
        };
        // Livy refuses the name of a batch that it has. Here a batch keeps its name until it has ended.
        let unique_name = name.map(|_| true);
        let queue = text(self.queue);
        (request, SubmissionOptions { wire: Some(Wire::Livy), unique_name, queue, ..SubmissionOptions::default() })
    }
}

/// Returns the text of a problem with Livy's names of fields.
pub(super) fn in_words_of_livy(problem: &Problem) -> String {
    if problem.errors.is_empty() {
        return problem.detail.clone();
    }
    let words = problem.errors.iter().map(|error| {
        let part = error.pointer.as_deref().map(field).or_else(|| error.parameter.as_deref().map(Cow::from));
        part.map_or_else(|| error.detail.clone(), |part| format!("{part}: {}", error.detail))
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Returns Livy's name of the field at a pointer.
fn field(pointer: &str) -> Cow<'_, str> {
    const NAMES: [(&str, &str); 4] =
        [("appResource", "file"), ("mainClass", "className"), ("appArgs", "args"), ("sparkProperties", "conf")];
    let pointer = pointer.trim_start_matches("#/");
    let (first, rest) = pointer.split_once('/').map_or((pointer, None), |(first, rest)| (first, Some(rest)));
    let first = NAMES.iter().find(|(ours, _)| *ours == first).map_or(first, |(_, livys)| livys);
    match rest {
        Some(rest) => format!("{first}/{rest}").into(),
        None => first.to_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> (CreateSubmissionRequest, SubmissionOptions) {
        let ParsedBatch { request, options } = parse(body.as_bytes(), None, SparkVersion::V4_3).unwrap();
        (request, options)
    }

    fn refusal(body: &str) -> String {
        in_words_of_livy(&parse(body.as_bytes(), None, SparkVersion::V4_3).unwrap_err())
    }

    #[test]
    fn fields_become_properties_over_those_of_conf() {
        let body = r#"{"file": "local:///a.py", "className": null, "args": ["x", 1], "driverCores": "2", "numExecutors": 3,
            "driverMemory": "1g", "jars": ["local:///a.jar", "local:///b.jar"], "name": "nightly", "queue": "default",
            "conf": {"spark.driver.memory": "2g", "spark.jars": "local:///c.jar", "spark.eventLog.enabled": false}}"#;
        let (request, options) = parsed(body);
        assert_eq!((request.app_resource.as_str(), request.main_class.as_str()), ("local:///a.py", ""));
        assert_eq!(request.app_args, ["x", "1"]);
        for (key, value) in [
            ("spark.driver.memory", "1g"),
            ("spark.driver.cores", "2"),
            ("spark.executor.instances", "3"),
            ("spark.jars", "local:///a.jar,local:///b.jar,local:///c.jar"),
            ("spark.eventLog.enabled", "false"),
            ("spark.app.name", "nightly"),
        ] {
            assert_eq!(request.spark_properties[key], value);
        }
        assert_eq!((options.wire, options.unique_name), (Some(Wire::Livy), Some(true)));
        assert_eq!(options.queue.as_deref(), Some("default"));
        let (_, options) = parsed(r#"{"file": "local:///a.py", "queue": ""}"#);
        assert_eq!((options.unique_name, options.queue), (None, None));
    }

    #[test]
    fn do_as_comes_before_the_proxy_user() {
        let body = r#"{"file": "local:///a.py", "proxyUser": "bob"}"#;
        let user = |do_as: Option<&str>| {
            parse(body.as_bytes(), do_as.map(str::to_owned), SparkVersion::V4_3).unwrap().request.proxy_user
        };
        assert_eq!((user(None).as_deref(), user(Some("alice")).as_deref()), (Some("bob"), Some("alice")));
    }

    #[test]
    fn a_refusal_names_livys_field() {
        for (body, says) in [
            ("{}", "file: the application's file is required"),
            (r#"{"file": "local:///a", "args": {}}"#, "args: must be an array of strings, not an object"),
            (r#"{"file": "local:///a", "colour": 1}"#, "colour: a batch has no such field"),
            (r#"{"file": "local:///a", "driverMemory": "much"}"#, "conf/spark.driver.memory: expected memory value"),
            ("[]", "The request is not a JSON object."),
            ("", "The body is empty."),
        ] {
            assert!(refusal(body).starts_with(says), "{}", refusal(body));
        }
    }
}
