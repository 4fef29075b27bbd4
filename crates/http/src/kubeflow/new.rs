//! The body of a request of Kubeflow's operator.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use sparkgate_service::SubmissionOptions;
use sparkgate_spark::{
    CreateSubmissionRequest,
    rest::{RequestError, first_value},
};
use sparkgate_submission::Wire;
use sparkgate_web::{
    json::read as read_json,
    problem::{Code, Problem},
};

/// The main class of a request whose arguments are a command line.
const SPARK_SUBMIT: &str = "org.apache.spark.deploy.SparkSubmit";
/// The operator finds its driver by this label.
const SUBMISSION_LABEL: &str = "spark.kubernetes.driver.label.sparkoperator.k8s.io/submission-id";
/// Spark's containers in the templates. If there is none of this name, the first one is Spark's.
const DRIVER: &str = "spark-kubernetes-driver";
const EXECUTOR: &str = "spark-kubernetes-executor";

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    submission_id: String,
    #[serde(default)]
    spark_submit_args: Vec<String>,
    driver_pod_template: Option<Value>,
    executor_pod_template: Option<Value>,
}

/// An application to submit.
#[derive(Debug)]
pub(super) struct NewApplication {
    pub(super) submission_id: String,
    pub(super) request: CreateSubmissionRequest,
    pub(super) options: SubmissionOptions,
}

/// Parses the body. Sets `id` to the operator's id as soon as it is known, for errors.
pub(super) fn parse(body: &[u8], id: &mut String) -> Result<NewApplication, Problem> {
    let document = first_value(body)?;
    serde_json::from_slice::<&RawValue>(body).map_err(|error| RequestError::Syntax(error.to_string()))?;
    if !document.get().starts_with('{') {
        return Err(Problem::new(Code::InvalidRequest, "The request is not a JSON object."));
    }
    let (read, errors) = read_json::<Body>(document, "an application");
    if let Some(read) = &read {
        id.clone_from(&read.submission_id);
    }
    let Some(Body { submission_id, spark_submit_args, mut driver_pod_template, mut executor_pod_template }) =
        read.filter(|_| errors.is_empty())
    else {
        return Err(Problem::for_fields(Code::InvalidRequest, errors));
    };
    if submission_id.is_empty() {
        return Err(Problem::field("#/submission_id".to_owned(), "the operator's id of the attempt is required"));
    }
    let mut properties = BTreeMap::from([(SUBMISSION_LABEL.to_owned(), submission_id.clone())]);
    for (template, container, role) in
        [(&mut driver_pod_template, DRIVER, "driver"), (&mut executor_pod_template, EXECUTOR, "executor")]
    {
        if let Some(template) = template
            && is_named_after_completion(template, container)
        {
            let key = format!("spark.kubernetes.{role}.podTemplateContainerName");
            properties.insert(key, container.to_owned());
        }
    }
    let request = CreateSubmissionRequest {
        main_class: SPARK_SUBMIT.to_owned(),
        app_args: spark_submit_args,
        // Those of the arguments override these.
        spark_properties: properties,
        driver_pod_template,
        executor_pod_template,
        ..CreateSubmissionRequest::default()
    };
    let client_id = Some(submission_id.clone());
    let options = SubmissionOptions { client_id, wire: Some(Wire::Kubeflow), ..SubmissionOptions::default() };
    Ok(NewApplication { submission_id, request, options })
}

/// Gives a template without containers one for Spark, as Spark does, and returns whether it has one of this name.
fn is_named_after_completion(template: &mut Value, name: &str) -> bool {
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return false };
    let containers = spec.entry("containers").or_insert(Value::Null);
    if containers.is_null() || containers.as_array().is_some_and(Vec::is_empty) {
        *containers = json!([{"name": name}]);
    }
    containers.as_array().is_some_and(|all| all.iter().any(|container| container["name"] == name))
}

/// Returns the text of a problem with the operator's names of fields.
pub(super) fn in_words_of_operator(problem: &Problem) -> String {
    if problem.errors.is_empty() {
        return problem.detail.clone();
    }
    let words = problem.errors.iter().map(|error| {
        let pointer = error.pointer.as_deref().unwrap_or_default().trim_start_matches("#/");
        let part = pointer
            .replacen("appArgs", "spark_submit_args", 1)
            .replacen("driverPodTemplate", "driver_pod_template", 1)
            .replacen("executorPodTemplate", "executor_pod_template", 1);
        format!("{part}: {}", error.detail)
    });
    words.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_names_sparks_container_if_it_has_one() {
        let container = |containers: Value| {
            let body = json!({"submission_id": "u", "driver_pod_template": {"spec": {"containers": containers}}});
            let new = parse(body.to_string().as_bytes(), &mut String::new()).unwrap();
            let key = "spark.kubernetes.driver.podTemplateContainerName";
            (new.request.spark_properties.get(key).cloned(), new.request.driver_pod_template.unwrap())
        };
        let (name, _) = container(json!([{"name": "side-car"}, {"name": DRIVER}]));
        assert_eq!(name.as_deref(), Some(DRIVER));
        assert_eq!(container(json!([{"name": "first"}, {"name": "second"}])).0, None);
        let (name, template) = container(Value::Null);
        assert_eq!((name.as_deref(), &template["spec"]["containers"][0]["name"]), (Some(DRIVER), &DRIVER.into()));
    }

    #[test]
    fn the_id_is_known_as_soon_as_it_is_read() {
        for (body, id, says) in [
            (r#"{"submission_id": "u", "spark_submit_args": [1]}"#, "u", "spark_submit_args/0: "),
            (r#"{"submission_id": "u", "more": 1}"#, "u", "more: "),
            (r#"{"spark_submit_args": []}"#, "", "submission_id: "),
        ] {
            let mut read = String::new();
            let problem = parse(body.as_bytes(), &mut read).unwrap_err();
            let text = in_words_of_operator(&problem);
            assert!(read == id && text.starts_with(says), "{read} {text}");
        }
    }
}
