//! Parses the body of a create request: Spark's fields, and those that only this API has.

use std::collections::{BTreeMap, HashMap};

use axum::{
    extract::Request,
    http::{HeaderMap, header},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Problem,
    problem::{Code, FieldError},
};
use crate::{
    api::{AppState, body, idempotency_key},
    service::{Retries, SubmissionOptions},
    spark::{
        CreateSubmissionRequest, Refusal, SparkVersion,
        rest::{RequestError, parse_partial},
    },
};

const OWN: [&str; 7] =
    ["name", "uniqueName", "labels", "startTimeoutSeconds", "runTimeoutSeconds", "killGraceSeconds", "maxRetries"];
/// Fields that Spark's protocol needs and this API ignores.
const SPARKS: [&str; 2] = ["action", "message"];

/// Reads the body of a create request and its idempotency key.
pub(super) async fn read(
    state: &AppState,
    request: Request,
) -> Result<(CreateSubmissionRequest, SubmissionOptions), Problem> {
    is_json(request.headers())?;
    let key = idempotency_key::read(request.headers());
    let key = key.map_err(|reason| Problem::parameter("Idempotency-Key", reason))?;
    let bytes = body::read(request.into_body(), &state.settings).await.map_err(|fault| match fault {
        body::Fault::TooLarge { limit } => Problem::new(
            Code::RequestTooLarge,
            format!("The body may have at most {limit} bytes (SPARKGATE_MAX_REQUEST_BODY)."),
        ),
        body::Fault::Broken(why) => Problem::new(Code::InvalidRequest, format!("The body could not be read: {why}.")),
    })?;
    let (request, mut options) = parse(&bytes, state.service.submissions.spark_version())?;
    options.idempotency_key = key;
    Ok((request, options))
}

fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    let detail = format!("Content-Type is {given:?}: send application/json (curl has --json).");
    Err(Problem::new(Code::UnsupportedMediaType, detail))
}

/// Parses the fields.
pub(super) fn parse(
    bytes: &[u8],
    version: SparkVersion,
) -> Result<(CreateSubmissionRequest, SubmissionOptions), Problem> {
    let (mut request, unknown) = parse_partial(bytes, version)?;
    let mut fields: HashMap<String, Value> =
        serde_json::from_slice(bytes).map_err(|error| RequestError::Syntax(error.to_string()))?;
    let unknown: Vec<FieldError> = unknown
        .iter()
        .filter(|field| !OWN.contains(&field.as_str()) && !SPARKS.contains(&field.as_str()))
        // A null is the same as an absent field.
        .filter(|field| fields.get(*field).is_none_or(|value| !value.is_null()))
        .map(|field| FieldError {
            pointer: Some(format!("#/{}", super::problem::escape(field))),
            detail: "a submission has no such field, or the field occurs twice".to_owned(),
            parameter: None,
        })
        .collect();
    if let Some(first) = unknown.first() {
        let detail = format!("{}: {}", first.pointer.as_deref().unwrap_or_default(), first.detail);
        return Err(Problem { errors: unknown, ..Problem::new(Code::InvalidRequest, detail) });
    }
    let mut own = |name: &str| fields.remove(name).filter(|value| !value.is_null());
    if let Some(name) = typed::<String>("name", own("name"), "a string")? {
        if name.contains('\0') {
            return Err(Refusal::field("name", "a NUL character is not allowed").into());
        }
        request.spark_properties.insert("spark.app.name".to_owned(), name);
    }
    let seconds = "a whole number of seconds";
    let retries: BTreeMap<String, u32> =
        typed("maxRetries", own("maxRetries"), "numbers of retries: {\"infrastructure\": 1, \"application\": 0}")?
            .unwrap_or_default();
    if let Some(kind) = retries.keys().find(|kind| !["infrastructure", "application"].contains(&kind.as_str())) {
        return Err(Refusal::field(
            format!("maxRetries[\"{kind}\"]"),
            "the kinds of retries are infrastructure and application",
        )
        .into());
    }
    let mut time = |name: &str| Ok::<_, Problem>(typed(name, own(name), seconds)?.map(std::time::Duration::from_secs));
    let (start_timeout, run_timeout, kill_grace) =
        (time("startTimeoutSeconds")?, time("runTimeoutSeconds")?, time("killGraceSeconds")?);
    let options = SubmissionOptions {
        idempotency_key: None,
        unique_name: typed("uniqueName", own("uniqueName"), "true or false")?,
        labels: typed("labels", own("labels"), "an object whose values are strings")?.unwrap_or_default(),
        start_timeout,
        run_timeout,
        kill_grace,
        retries: Retries {
            infrastructure: retries.get("infrastructure").copied(),
            application: retries.get("application").copied(),
        },
    };
    Ok((request, options))
}

fn typed<T: DeserializeOwned>(field: &str, value: Option<Value>, expected: &str) -> Result<Option<T>, Problem> {
    let typed = value.map(serde_json::from_value).transpose();
    typed.map_err(|_| Refusal::field(field, format!("expected {expected}")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> Problem {
        parse(body.as_bytes(), SparkVersion::V4_3).unwrap_err()
    }

    #[test]
    fn invalid_field_is_reported_with_its_pointer() {
        for (body, pointer) in [
            (r#"{"labels": {"a": 1}}"#, "#/labels"),
            (r#"{"uniqueName": "yes"}"#, "#/uniqueName"),
            (r#"{"startTimeoutSeconds": 1.5}"#, "#/startTimeoutSeconds"),
            (r#"{"runTimeoutSeconds": -1}"#, "#/runTimeoutSeconds"),
            (r#"{"maxRetries": {"any": 1}}"#, "#/maxRetries/any"),
            (r#"{"sparkProperty": {}}"#, "#/sparkProperty"),
            (r#"{"name": ["x"]}"#, "#/name"),
            (r#"{"sparkProperties": []}"#, "#/sparkProperties"),
        ] {
            let problem = refused(body);
            assert_eq!(problem.code, Code::InvalidRequest, "{body}");
            assert_eq!(problem.errors[0].pointer.as_deref(), Some(pointer), "{body}: {problem:?}");
        }
        for body in ["", "[]", "{", "nul", "\u{0}"] {
            let code = refused(body).code;
            assert!(matches!(code, Code::InvalidJson | Code::InvalidRequest), "{body}: {code:?}");
        }
    }

    #[test]
    fn fields_of_the_body_become_request_and_options() {
        let body = r#"{"appResource": "local:///a.jar", "mainClass": "A", "name": "Pi", "uniqueName": true, "labels": {"a": "b"},
            "killGraceSeconds": 5, "maxRetries": {"infrastructure": 2}, "runTimeoutSeconds": null}"#;
        let (request, options) = parse(body.as_bytes(), SparkVersion::V4_3).unwrap();
        assert_eq!(request.spark_properties["spark.app.name"], "Pi");
        assert_eq!((options.unique_name, options.labels["a"].as_str()), (Some(true), "b"));
        assert_eq!((options.kill_grace.map(|time| time.as_secs()), options.run_timeout), (Some(5), None));
        assert_eq!((options.retries.infrastructure, options.retries.application), (Some(2), None));
    }
}
