//! The body of a create request: Spark's fields, and those that only this API has.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use serde::{Deserialize, de::IgnoredAny};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::document::MaxRetries;
use super::document::State as StateWord;
use super::failure::word;
use crate::v1::{
    queues::requeue::check_priority,
    webhooks::document::{FormatWord, format_of, states_of},
};
use sparkgate_service::{self, AfterNodeLoss, MemoryGrowth, Restart, Retries, SubmissionOptions, parse_max};
use sparkgate_spark::{CreateSubmissionRequest, SparkVersion, rest::refused_properties};
use sparkgate_web::{
    json::{self, Text},
    problem::{Code, FieldError, Problem, pointer::pointer},
};

/// The application to run. Fields of Spark's `CreateSubmissionRequest` keep their names. Every field is optional, except
/// those that the application needs.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewSubmission, example = json!({
    "name": "Pi",
    "appResource": "local:///opt/spark/examples/src/main/python/pi.py",
    "appArgs": ["10"],
    "sparkProperties": {"spark.executor.instances": "1"},
    "labels": {"team": "data"},
    "runTimeoutSeconds": 3600
}))]
pub(in crate::v1) struct NewSubmission {
    /// The application's jar, Python or R file: a URI that the driver can read.
    #[schema(value_type = Option<String>)]
    app_resource: Option<Text>,
    #[schema(value_type = Option<String>)]
    main_class: Option<Text>,
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    app_args: Vec<Text>,
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    spark_properties: BTreeMap<String, Text>,
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    environment_variables: BTreeMap<String, Text>,
    /// `spark.app.name`.
    name: Option<String>,
    /// The Spark release, such as `4.1.4`, or its line, `4.1`: one of `GET /v1/spark-versions`. Without it, the default of the
    /// tenant or the gateway.
    #[schema(value_type = Option<String>, example = "4.3")]
    spark_version: Option<Text>,
    /// The client's own id of the submission, such as a UUID: at most 255 bytes. If another submission of the tenant has it, the
    /// request is refused with 409. `GET /v1/submissions?clientId=` finds it.
    #[schema(example = "0f0b7a52-9a56-4ac6-b1a3-3ab1a1a0d3c4")]
    client_id: Option<String>,
    /// Refuse the request with 409 if a live submission of the same namespace that also set `uniqueName` has this name.
    unique_name: Option<bool>,
    /// The queue that has to admit the submission: one of `GET /v1/queues`. Without it, the default queue of the tenant, if it has one.
    #[schema(value_type = Option<String>, example = "nightly")]
    queue: Option<Text>,
    /// Its priority among the submissions of its tenant in that queue.
    #[schema(minimum = 0, maximum = 1000)]
    priority: Option<i32>,
    /// Labels to filter submissions by, in Kubernetes' syntax; at most 32.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Kill the submission if it isn't running this long after it was queued.
    #[schema(minimum = 1)]
    start_timeout_seconds: Option<u64>,
    /// Kill the submission if it is still running this long after it started.
    #[schema(minimum = 1)]
    run_timeout_seconds: Option<u64>,
    /// How long a run takes as a rule. A run that takes longer goes on, and is reported: by an event and a message to webhooks with the reason
    /// `Late`, and in `late`. Without it, runs are late after three times the median of the last runs of their name.
    #[schema(minimum = 1)]
    expected_duration_seconds: Option<u64>,
    /// Time from SIGTERM to SIGKILL when the submission is killed.
    kill_grace_seconds: Option<u64>,
    #[serde(default)]
    #[schema(value_type = Option<MaxRetries>)]
    max_retries: NewRetries,
    /// More memory for the attempt after one whose driver or executors ran out of it.
    #[serde(default)]
    #[schema(value_type = Option<NewMemoryGrowth>)]
    memory_growth: NewMemoryGrowth,
    /// Which ends of the driver are followed by another attempt, however many there were: `onFailure` (it failed, or its end is unknown),
    /// or `always` (success, too). The pause between them grows to five minutes while attempts end within ten minutes.
    #[schema(value_type = Option<RestartWord>)]
    restart: Option<String>,
    /// Where the attempts run that follow one which the cluster ended.
    #[serde(default)]
    #[schema(value_type = Option<NewAfterNodeLoss>)]
    after_node_loss: NewAfterNodeLoss,
    /// Where the state changes of this submission are sent; at most 4.
    #[serde(default)]
    webhooks: Vec<SubmissionWebhook>,
    /// The user that the application impersonates: `--proxy-user`.
    #[schema(value_type = Option<String>)]
    proxy_user: Option<Text>,
    /// The template of the driver's pod: a pod as a JSON object, a pod as a string of YAML, or the name of a template
    /// that the gateway's operator provides.
    driver_pod_template: Option<serde_json::Value>,
    /// The template of executors' pods, in the same three forms.
    executor_pod_template: Option<serde_json::Value>,
    /// Accepted for compatibility with Spark's protocol; it has no effect.
    #[schema(value_type = Option<String>)]
    client_spark_version: Option<Text>,
    /// Spark's protocol needs this field.
    #[schema(ignore)]
    #[serde(rename = "action")]
    _action: Option<IgnoredAny>,
    /// Spark's protocol knows this field.
    #[schema(ignore)]
    #[serde(rename = "message")]
    _message: Option<IgnoredAny>,
}

/// A webhook of this submission only.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default)]
pub(in crate::v1) struct SubmissionWebhook {
    /// Where messages are sent.
    #[schema(required = true, example = "https://hooks.example.org/spark")]
    url: String,
    /// The signing secret: `whsec_`, and 24 to 64 bytes as base64.
    #[schema(required = true, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
    #[schema(value_type = Option<FormatWord>)]
    format: Option<String>,
    /// Only these states; all by default.
    #[schema(value_type = Vec<StateWord>)]
    states: Vec<String>,
}

impl SubmissionWebhook {
    /// Parses its words.
    ///
    /// # Errors
    /// The field that can't be used, and the reason.
    fn into_option(self) -> Result<sparkgate_service::SubmissionWebhook, (String, String)> {
        Ok(sparkgate_service::SubmissionWebhook {
            url: self.url,
            secret: self.secret.into(),
            format: format_of(self.format.as_deref()).map_err(|reason| ("format".to_owned(), reason))?,
            states: states_of(&self.states).map_err(|(at, reason)| (format!("states/{at}"), reason))?,
        })
    }
}

/// More memory for later attempts.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = MemoryGrowth)]
struct NewMemoryGrowth {
    /// The most attempts that follow because memory ran out. They count against no other budget.
    #[schema(required = true, example = 2)]
    retries: Option<u32>,
    /// What the memory is multiplied by each time: more than 1, at most 10. 1.5 by default.
    #[schema(example = 1.5)]
    factor: Option<f64>,
    /// The most memory of a pod, as Spark writes sizes.
    #[schema(example = "16g")]
    max: Option<String>,
}

/// Where the attempts run that follow one which the cluster ended: its node was lost or drained, or another pod replaced it.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AfterNodeLoss)]
struct NewAfterNodeLoss {
    /// Node selectors of the driver and its executors. Each replaces the one that the submission has; null removes it.
    #[serde(default)]
    #[schema(example = json!({"karpenter.sh/capacity-type": "on-demand"}))]
    node_selector: BTreeMap<String, Option<String>>,
}

/// Describes the words of [`Restart`].
struct RestartWord;

impl PartialSchema for RestartWord {
    fn schema() -> RefOr<Schema> {
        word(Restart::ALL.into_iter().map(Restart::as_str), "Which ends of a driver are followed by another attempt.")
    }
}

impl ToSchema for RestartWord {
    fn name() -> Cow<'static, str> {
        "Restart".into()
    }
}

#[derive(Default, Deserialize)]
struct NewRetries {
    infrastructure: Option<u32>,
    application: Option<u32>,
    capacity: Option<u32>,
    quota: Option<u32>,
}

impl NewSubmission {
    /// Adds what is wrong with webhooks to `errors`.
    fn into_parts(self, errors: &mut Vec<FieldError>) -> (CreateSubmissionRequest, SubmissionOptions) {
        let webhooks = self.webhooks.into_iter().enumerate().filter_map(|(at, webhook)| {
            let refused = |(field, reason)| {
                errors.extend(Problem::field(format!("#/webhooks/{at}/{field}"), reason).errors);
            };
            webhook.into_option().map_err(refused).ok()
        });
        let webhooks = webhooks.collect();
        if let Err(problem) = check_priority(self.priority) {
            errors.extend(problem.errors);
        }
        let mut parsed =
            |pointer: &str, reason: String| errors.extend(Problem::field(pointer.to_owned(), reason).errors);
        let NewMemoryGrowth { retries, factor, max } = self.memory_growth;
        let max_mib = max.and_then(|max| parse_max(&max).map_err(|why| parsed("#/memoryGrowth/max", why)).ok());
        let restart = self.restart.and_then(|text| Restart::parse(&text).map_err(|why| parsed("#/restart", why)).ok());
        let text = |text: Option<Text>| text.map(|Text(text)| text);
        let texts = |texts: BTreeMap<String, Text>| -> BTreeMap<String, String> {
            texts.into_iter().map(|(key, Text(text))| (key, text)).collect()
        };
        let mut request = CreateSubmissionRequest {
            client_spark_version: text(self.client_spark_version).unwrap_or_default(),
            app_resource: text(self.app_resource).unwrap_or_default(),
            main_class: text(self.main_class).unwrap_or_default(),
            app_args: self.app_args.into_iter().map(|Text(text)| text).collect(),
            spark_properties: texts(self.spark_properties),
            environment_variables: texts(self.environment_variables),
            proxy_user: text(self.proxy_user),
            driver_pod_template: self.driver_pod_template,
            executor_pod_template: self.executor_pod_template,
        };
        if let Some(name) = self.name {
            request.spark_properties.insert("spark.app.name".to_owned(), name);
        }
        let options = SubmissionOptions {
            idempotency_key: None,
            client_id: self.client_id,
            wire: None,
            unique_name: self.unique_name,
            labels: self.labels,
            start_timeout: self.start_timeout_seconds.map(Duration::from_secs),
            run_timeout: self.run_timeout_seconds.map(Duration::from_secs),
            kill_grace: self.kill_grace_seconds.map(Duration::from_secs),
            retries: Retries {
                infrastructure: self.max_retries.infrastructure,
                application: self.max_retries.application,
                capacity: self.max_retries.capacity,
                quota: self.max_retries.quota,
            },
            memory_growth: MemoryGrowth { retries, factor, max_mib },
            restart,
            after_node_loss: AfterNodeLoss { node_selector: self.after_node_loss.node_selector },
            expected_duration: self.expected_duration_seconds.map(Duration::from_secs),
            spark_version: text(self.spark_version),
            queue: text(self.queue),
            priority: self.priority,
            webhooks,
            session: None,
        };
        (request, options)
    }
}

/// Parses the body; values are those of a Spark release. The problem names all fields that can't be used.
pub(in crate::v1) fn parse(
    body: &[u8],
    version: SparkVersion,
) -> Result<(CreateSubmissionRequest, SubmissionOptions), Problem> {
    let (submission, mut errors) = json::read::<NewSubmission>(json::object(body)?, "a submission");
    let Some((request, options)) = submission.map(|submission| submission.into_parts(&mut errors)) else {
        return Err(Problem::for_fields(Code::InvalidRequest, errors));
    };
    for refusal in refused_properties(&request.spark_properties, version) {
        let field = pointer(&refusal.field);
        if errors.iter().all(|error| error.pointer.as_ref() != Some(&field)) {
            errors.extend(Problem::field(field, refusal.reason).errors);
        }
    }
    if errors.is_empty() { Ok((request, options)) } else { Err(Problem::for_fields(Code::InvalidRequest, errors)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> Problem {
        parse(body.as_bytes(), SparkVersion::V4_3).unwrap_err()
    }

    /// Returns the pointer and the detail of each error.
    fn errors(body: &str) -> Vec<(String, String)> {
        let problem = refused(body);
        assert_eq!(problem.code, Code::InvalidRequest, "{body}");
        problem.errors.into_iter().map(|error| (error.pointer.unwrap_or_default(), error.detail)).collect()
    }

    #[test]
    fn invalid_field_is_reported_with_its_pointer_in_words_of_json() {
        for (body, pointer, detail) in [
            (r#"{"labels": {"team": 5}}"#, "#/labels/team", "must be a string, not a number"),
            (r#"{"uniqueName": "yes"}"#, "#/uniqueName", "must be true or false, not a string"),
            (r#"{"startTimeoutSeconds": 1.5}"#, "#/startTimeoutSeconds", "must be a whole number, not 1.5"),
            (r#"{"runTimeoutSeconds": -1}"#, "#/runTimeoutSeconds", "must be a whole number, not -1"),
            (r#"{"maxRetries": {"any": 1}}"#, "#/maxRetries/any", "there is no such field"),
            (r#"{"restart": "often"}"#, "#/restart", "\"often\" is not one of never, onFailure and always"),
            (r#"{"memoryGrowth": {"max": "much"}}"#, "#/memoryGrowth/max", "\"much\" is not a size, such as 16g"),
            (r#"{"maxRetries": []}"#, "#/maxRetries", "must be an object, not an array"),
            (r#"{"name": ["x"]}"#, "#/name", "must be a string, not an array"),
            (
                r#"{"sparkProperties": []}"#,
                "#/sparkProperties",
                "must be an object whose values are strings, not an array",
            ),
            (r#"{"appArgs": "x"}"#, "#/appArgs", "must be an array of strings, not a string"),
            (r#"{"appArgs": ["x", null]}"#, "#/appArgs/1", "must be a string, not null"),
            (r#"{"sparkVersion": [4, 1]}"#, "#/sparkVersion", "must be a string, not an array"),
            (r#"{"colour": "green"}"#, "#/colour", "a submission has no such field"),
            (
                r#"{"sparkProperty": {}}"#,
                "#/sparkProperty",
                "a submission has no such field; did you mean `sparkProperties`?",
            ),
            (r#"{"name": "a\u0000"}"#, "#/name", "the text holds a NUL character"),
        ] {
            assert_eq!(errors(body), [(pointer.to_owned(), detail.to_owned())], "{body}");
        }
        for body in ["", "[]", "{", "nul", "\u{0}", "{} {}"] {
            let code = refused(body).code;
            assert!(matches!(code, Code::InvalidJson | Code::InvalidRequest), "{body}: {code:?}");
        }
    }

    #[test]
    fn all_parts_at_fault_are_named() {
        let body = r#"{"sparkProperties": {"spark.driver.memory": "much", "spark.driver.cores": "1.5", "spark.x": {},
            "spark.executor.memory": null}, "appArgs": [null, 1, []], "nmae": "x", "killGraceSeconds": "5"}"#;
        let expected = [
            ("#/nmae", "did you mean `name`"),
            ("#/sparkProperties/spark.executor.memory", "must be a string, not null"),
            ("#/sparkProperties/spark.x", "must be a string, not an object"),
            ("#/appArgs/0", "must be a string, not null"),
            ("#/appArgs/2", "must be a string, not an array"),
            ("#/killGraceSeconds", "must be a whole number, not a string"),
            ("#/sparkProperties/spark.driver.memory", "expected memory value: actual was 'much'"),
            ("#/sparkProperties/spark.driver.cores", "a whole number of cores is needed"),
        ];
        let errors = errors(body);
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
        for (pointer, says) in expected {
            assert!(errors.iter().any(|(at, detail)| at == pointer && detail.contains(says)), "{pointer}: {errors:?}");
        }
    }

    #[test]
    fn a_key_that_occurs_twice_is_refused_everywhere() {
        for (body, pointer) in [
            (r#"{"name": "a", "name": "b"}"#, "#/name"),
            (r#"{"appResource": "a", "appResource": "a"}"#, "#/appResource"),
            (r#"{"labels": {"a": "b", "a": "c"}}"#, "#/labels/a"),
            (r#"{"sparkProperties": {"a/b": "b", "a/b": "c"}}"#, "#/sparkProperties/a~1b"),
            (r#"{"maxRetries": {"application": 1, "application": 2}}"#, "#/maxRetries/application"),
        ] {
            assert_eq!(errors(body), [(pointer.to_owned(), "the key occurs more than once".to_owned())], "{body}");
        }
    }

    #[test]
    fn fields_of_the_body_become_request_and_options() {
        let body = r#"{"appResource": "local:///a.jar", "mainClass": "A", "name": "Pi", "uniqueName": true, "labels": {"a": "b"},
            "killGraceSeconds": 5, "maxRetries": {"infrastructure": 2}, "runTimeoutSeconds": null, "nothing": null,
            "appArgs": [1e3, true, "x"], "action": {}, "driverPodTemplate": {"kind": "Pod"}, "sparkVersion": 4.1}"#;
        let (request, options) = parse(body.as_bytes(), SparkVersion::V4_3).unwrap();
        assert_eq!(request.spark_properties["spark.app.name"], "Pi");
        assert_eq!(
            (request.app_args, request.main_class.as_str()),
            (["1e3", "true", "x"].map(str::to_owned).to_vec(), "A")
        );
        assert_eq!(request.driver_pod_template, Some(serde_json::json!({"kind": "Pod"})));
        assert_eq!((options.unique_name, options.labels["a"].as_str()), (Some(true), "b"));
        assert_eq!((options.kill_grace.map(|time| time.as_secs()), options.run_timeout), (Some(5), None));
        assert_eq!((options.retries.infrastructure, options.retries.application), (Some(2), None));
        assert_eq!(options.spark_version.as_deref(), Some("4.1"));
    }
}
