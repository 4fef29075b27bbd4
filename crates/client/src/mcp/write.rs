//! The tools that change something.

use std::collections::BTreeMap;

use http::HeaderValue;
use rmcp::{
    RoleServer, handler::server::wrapper::Parameters, model::CallToolResult, service::RequestContext, tool, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Tools, answer, read::Client};
use crate::{
    api::{Api, Call},
    document,
    error::Error,
    named::Named,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubmitParameters {
    request: NewSubmission,
    /// Only check the request, and return the Kubernetes objects and defaults. Nothing is created.
    #[serde(default)]
    dry_run: bool,
    /// A key that makes it safe to repeat the call: the same key and request create one submission.
    idempotency_key: Option<String>,
}

/// The application to run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewSubmission {
    /// The application's jar, Python or R file: a URI that the driver can read, such as `local:///opt/app.py` or `s3a://bucket/app.jar`.
    app_resource: String,
    /// The class to run, for Java and Scala.
    #[serde(skip_serializing_if = "Option::is_none")]
    main_class: Option<String>,
    #[serde(default)]
    app_args: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Spark properties. spark.kubernetes.namespace and spark.kubernetes.container.image choose namespace and image.
    #[serde(default)]
    spark_properties: BTreeMap<String, String>,
    #[serde(default)]
    environment_variables: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// A Spark release such as 4.1.4, or a line, 4.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    spark_version: Option<String>,
    /// Kill the submission if it isn't running this long after it was queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_timeout_seconds: Option<u64>,
    /// Kill the submission if it is still running this long after it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_timeout_seconds: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RerunParameters {
    /// The id of the earlier submission, or its beginning with at least the date.
    id: String,
    /// Changes as a JSON merge patch of the request, which `get_submission` returns with `include_request`; null removes a field. Values that
    /// look like secrets aren't stored: the user has to give them again.
    #[serde(default)]
    patch: Map<String, Value>,
    /// A key that makes it safe to repeat the call: the same key and request create one submission.
    idempotency_key: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KillParameters {
    /// The submission's id, or its beginning with at least the date.
    id: String,
}

#[tool_router(router = writing, vis = "pub(super)")]
impl Tools {
    /// Submit an application, or check a request.
    #[tool(annotations(
        title = "Submit an application",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn submit(
        &self,
        Parameters(parameters): Parameters<SubmitParameters>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(submitted(self.api(&context), &parameters).await)
    }

    /// Submit the request of an earlier submission again, with changes.
    #[tool(annotations(
        title = "Run a submission again",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn rerun(
        &self,
        Parameters(parameters): Parameters<RerunParameters>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(again(self.api(&context), &parameters).await)
    }

    /// Kill a submission in any state. What it hasn't done by then is not done; its record is kept.
    #[tool(annotations(
        title = "Kill a submission",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    async fn kill(
        &self,
        Parameters(KillParameters { id }): Parameters<KillParameters>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(killed(self.api(&context), &id).await)
    }
}

async fn submitted(api: Client, parameters: &SubmitParameters) -> Result<Value, Error> {
    let api = api?;
    let body = json!(parameters.request).to_string();
    if parameters.dry_run {
        let call = Call::post("checking the request", &["submissions"], body).query("dryRun", true);
        return sent(&api, &call).await;
    }
    let call = Call::post("submitting", &["submissions"], body);
    let call = call.header("idempotency-key", key(parameters.idempotency_key.as_deref())?);
    Ok(json!({ "submission": sent(&api, &call).await? }))
}

async fn again(api: Client, parameters: &RerunParameters) -> Result<Value, Error> {
    let api = api?;
    let id = fixed(&parameters.id)?.resolved(&api).await?;
    let body = json!(parameters.patch).to_string();
    let call = Call::post(format!("submitting {id} again"), &["submissions", id.as_str(), "rerun"], body);
    let call = call.header("idempotency-key", key(parameters.idempotency_key.as_deref())?);
    Ok(json!({ "submission": sent(&api, &call).await? }))
}

async fn killed(api: Client, id: &str) -> Result<Value, Error> {
    let api = api?;
    let id = fixed(id)?.resolved(&api).await?;
    let call = Call::delete(format!("killing {id}"), &["submissions", id.as_str()]);
    Ok(json!({ "submission": sent(&api, &call).await? }))
}

fn fixed(name: &str) -> Result<Named, Error> {
    Named::fixed(name).map_err(|error| Error::Here(format!("{name:?}: {error}")))
}

/// Returns an idempotency key as a header: all retries of a call have the same.
fn key(given: Option<&str>) -> Result<HeaderValue, Error> {
    let key = given.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
    HeaderValue::from_str(&key)
        .map_err(|_| Error::Here("idempotency_key: expected printable ASCII characters".to_owned()))
}

async fn sent(api: &Api, call: &Call) -> Result<Value, Error> {
    document::read(call.action(), &api.send(call).await?.body)
}
