//! The tools that change nothing.

use std::collections::BTreeMap;

use chrono::Utc;
use rmcp::{
    RoleServer,
    handler::server::wrapper::Parameters,
    model::{CallToolResult, ContentBlock},
    service::RequestContext,
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Tools,
    answer::{self, UNTRUSTED},
    log::Excerpt,
};
use crate::{
    api::{Api, Call},
    compare::{Run, compare},
    document,
    error::{Error, root},
    named::Named,
};
use sparkgate_submission::{FailureCode, State, SubmissionId, advice};

/// The lines of a log that are returned unless the caller asks for another number.
const TAIL: u32 = 200;
const LONGEST_TAIL: u32 = 1000;
/// The lines of the log that come with a failure.
const TAIL_OF_FAILURE: u32 = 60;
/// The lines that are read of a log before the last ones are selected: a log with long lines is not read as a whole.
const READ: u32 = 100_000;
const LONGEST_LIST: u32 = 50;
/// The fields of a submission in a list.
const SHORT: [&str; 14] = [
    "id",
    "name",
    "state",
    "owner",
    "tenant",
    "namespace",
    "labels",
    "sparkVersion",
    "attempt",
    "createdAt",
    "startedAt",
    "finishedAt",
    "exitCode",
    "clientId",
];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfSubmission {
    /// The submission's id, its beginning with at least the date, or @latest for the newest one.
    id: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ListParameters {
    /// Any of these states: QUEUED, LAUNCHING, PENDING, RUNNING, KILLING, FINISHED, FAILED, KILLED, ERROR, LOST.
    states: Vec<String>,
    /// Prefix of the name.
    name: Option<String>,
    /// The user that the application runs as.
    owner: Option<String>,
    namespace: Option<String>,
    /// Labels, all of which must match.
    labels: BTreeMap<String, String>,
    /// The client's own id.
    client_id: Option<String>,
    /// A Spark release such as 4.1.4, or a line, 4.1.
    spark_version: Option<String>,
    /// Only submissions at or after this time (RFC 3339).
    created_after: Option<String>,
    /// Only submissions before this time (RFC 3339).
    created_before: Option<String>,
    /// At most this many, up to 50; 20 by default.
    limit: Option<u32>,
    /// `next` of an earlier list with the same filters.
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetParameters {
    /// The submission's id, its beginning with at least the date, or @latest for the newest one.
    id: String,
    /// Also return the request: properties, arguments, image. False by default.
    #[serde(default)]
    include_request: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogParameters {
    /// The submission's id, its beginning with at least the date, or @latest for the newest one.
    id: String,
    /// The number of last lines, up to 1000; 200 by default. With `search`, the number of last matches.
    tail: Option<u32>,
    /// Only lines that contain this text, whatever its case.
    search: Option<String>,
    /// The id of an executor; the driver by default.
    executor: Option<u32>,
    /// The number of an attempt; the latest by default.
    attempt: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareParameters {
    /// The id of one submission, such as one that succeeded.
    a: String,
    /// The id of the other one.
    b: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct UsageParameters {
    /// The first day (2026-01-02), by default the first of this month.
    since: Option<String>,
    /// The day after the last one; by default tomorrow.
    until: Option<String>,
    /// What to group by: day, tenant, owner, namespace, label:KEY.
    group_by: Vec<String>,
    tenant: Option<String>,
    owner: Option<String>,
    namespace: Option<String>,
}

#[tool_router(router = reading, vis = "pub(super)")]
impl Tools {
    /// List submissions, the newest first.
    #[tool(annotations(title = "List submissions", read_only_hint = true, open_world_hint = false))]
    async fn list_submissions(
        &self,
        Parameters(parameters): Parameters<ListParameters>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(list(self.api(&context), parameters).await)
    }

    /// Get a submission: its state, times, driver, executors, limits, usage, and why it waits or failed.
    #[tool(annotations(title = "Get a submission", read_only_hint = true, open_world_hint = false))]
    async fn get_submission(
        &self,
        Parameters(parameters): Parameters<GetParameters>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(get(self.api(&context), &parameters).await)
    }

    /// Explain why a submission isn't running yet, and what to do about it: capacity, image, missing objects, quotas.
    #[tool(annotations(title = "Explain why a submission waits", read_only_hint = true, open_world_hint = false))]
    async fn explain_waiting(
        &self,
        Parameters(OfSubmission { id }): Parameters<OfSubmission>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(waiting(self.api(&context), &id).await)
    }

    /// Explain why a submission failed, and what to do about it: the code of the failure, the exception, Kubernetes' events, all attempts, the
    /// last state changes and the end of the log.
    #[tool(annotations(title = "Explain why a submission failed", read_only_hint = true, open_world_hint = false))]
    async fn explain_failure(
        &self,
        Parameters(OfSubmission { id }): Parameters<OfSubmission>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(failure(self.api(&context), &id).await)
    }

    /// Read the end of a log of the driver or of an executor, or the lines that contain a text.
    #[tool(annotations(title = "Read a log", read_only_hint = true, open_world_hint = false))]
    async fn read_log(
        &self,
        Parameters(parameters): Parameters<LogParameters>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        match log(self.api(&context), &parameters).await {
            Ok((about, text)) => {
                // The job can't know the number, so its text can't end the block.
                let mark = format!("job-output-{}", Uuid::new_v4().simple());
                let about = ContentBlock::text(about.to_string());
                let text = ContentBlock::text(format!("{UNTRUSTED}\n<{mark}>\n{text}</{mark}>"));
                CallToolResult::success(vec![about, text])
            }
            Err(error) => answer::failed(&error),
        }
    }

    /// Compare two submissions, such as a run that succeeded and one that failed: differences of properties, arguments, image and variables,
    /// the outcomes, and how long they waited and ran.
    #[tool(annotations(title = "Compare two submissions", read_only_hint = true, open_world_hint = false))]
    async fn compare_submissions(
        &self,
        Parameters(CompareParameters { a, b }): Parameters<CompareParameters>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(compared(self.api(&context), &a, &b).await)
    }

    /// Sum up what submissions used over days: core and memory time, and the cost if the gateway has prices.
    #[tool(annotations(title = "Sum up usage", read_only_hint = true, open_world_hint = false))]
    async fn get_usage(
        &self,
        Parameters(parameters): Parameters<UsageParameters>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        answer::of(usage(self.api(&context), &parameters).await)
    }
}

/// A client, or why there is none.
pub(super) type Client = Result<std::sync::Arc<Api>, Error>;

async fn list(api: Client, parameters: ListParameters) -> Result<Value, Error> {
    let api = api?;
    let limit = parameters.limit.unwrap_or(20).clamp(1, LONGEST_LIST);
    let mut call = Call::get("listing submissions", &["submissions"]).query("limit", limit);
    for state in &parameters.states {
        call = call.query("state", state.to_ascii_uppercase());
    }
    for (key, value) in &parameters.labels {
        call = call.query("label", format_args!("{key}={value}"));
    }
    let call = call
        .query_if("name", parameters.name)
        .query_if("owner", parameters.owner)
        .query_if("namespace", parameters.namespace)
        .query_if("clientId", parameters.client_id)
        .query_if("sparkVersion", parameters.spark_version)
        .query_if("createdAfter", parameters.created_after)
        .query_if("createdBefore", parameters.created_before)
        .query_if("cursor", parameters.cursor);
    let mut page = read(&api, &call).await?;
    let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut answer = json!({ "submissions": items.iter().map(short).collect::<Vec<_>>() });
    if let Some(next) = page["next"].as_str() {
        answer["next"] = next.into();
    }
    Ok(answer)
}

/// Returns the fields of a submission that a list has.
fn short(submission: &Value) -> Value {
    let mut fields: Map<String, Value> =
        SHORT.into_iter().filter_map(|field| Some((field.to_owned(), submission.get(field)?.clone()))).collect();
    for why in ["waiting", "failure"] {
        if let Some(reason) = submission.get(why) {
            fields.insert(why.to_owned(), json!({ "code": reason["code"], "message": reason["message"] }));
        }
    }
    fields.into()
}

async fn get(api: Client, parameters: &GetParameters) -> Result<Value, Error> {
    let api = api?;
    let id = resolve(&api, &parameters.id).await?;
    let mut answer = json!({ "submission": submission(&api, &id).await? });
    if parameters.include_request {
        answer["request"] = request(&api, &id).await?;
    }
    Ok(answer)
}

async fn waiting(api: Client, id: &str) -> Result<Value, Error> {
    let api = api?;
    let id = resolve(&api, id).await?;
    let submission = submission(&api, &id).await?;
    let state = submission["state"].as_str().unwrap_or_default();
    let mut answer = json!({ "submission": short(&submission) });
    let parsed: Option<State> = state.parse().ok();
    match submission.get("waiting") {
        Some(why) => explain(&mut answer, why, false),
        None if parsed.is_some_and(State::is_terminal) => {
            answer["answer"] = format!("It doesn't wait: it has ended as {state}. explain_failure says why.").into();
        }
        None => answer["answer"] = format!("It doesn't wait: it is {state}.").into(),
    }
    Ok(answer)
}

async fn failure(api: Client, id: &str) -> Result<Value, Error> {
    let api = api?;
    let id = resolve(&api, id).await?;
    let submission = submission(&api, &id).await?;
    let state = submission["state"].as_str().unwrap_or_default();
    let mut answer = json!({ "submission": short(&submission) });
    let Some(why) = submission.get("failure") else {
        let hint = if submission.get("waiting").is_some() { " explain_waiting says what it waits for." } else { "" };
        answer["answer"] = format!("It has not failed: it is {state}.{hint}").into();
        return Ok(answer);
    };
    explain(&mut answer, why, true);
    let id = id.as_str();
    let attempts = read(&api, &Call::get("reading the attempts", &["submissions", id, "attempts"])).await?;
    answer["attempts"] = attempts["items"].clone();
    let events = read(&api, &Call::get("reading the events", &["submissions", id, "events"])).await?;
    let events = events["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    answer["lastStateChanges"] = events[events.len().saturating_sub(20)..].into();
    let parameters =
        LogParameters { id: id.to_owned(), tail: Some(TAIL_OF_FAILURE), search: None, executor: None, attempt: None };
    // The failure has the end of the log, too, if it was kept.
    answer["log"] = match log(Ok(std::sync::Arc::clone(&api)), &parameters).await {
        Ok((_, text)) => {
            // It has what the reason has of it.
            answer["reason"].as_object_mut().and_then(|reason| reason.remove("logTail"));
            text.into()
        }
        Err(error) if error.is_passing() => return Err(error),
        Err(error) => json!({ "missing": error.to_string() }),
    };
    Ok(answer)
}

/// Adds a reason, and what its code stands for.
fn explain(answer: &mut Value, why: &Value, is_over: bool) {
    answer["reason"] = why.clone();
    let code = FailureCode::ALL.iter().find(|code| Some(code.as_str()) == why["code"].as_str());
    if let Some(code) = code {
        let (what, remedy) = advice(*code, is_over);
        answer["whatHappened"] = what.into();
        answer["whatToDo"] = remedy.into();
    }
}

/// Returns what was read of a log, and its text.
async fn log(api: Client, parameters: &LogParameters) -> Result<(Value, String), Error> {
    let api = api?;
    let id = resolve(&api, &parameters.id).await?;
    let most = parameters.tail.unwrap_or(TAIL).clamp(1, LONGEST_TAIL);
    let search = parameters.search.as_deref().filter(|search| !search.is_empty());
    let call = Call::get(format!("reading the log of {id}"), &["submissions", id.as_str(), "logs"])
        .accept("text/plain, application/problem+json")
        .query("tail", if search.is_some() { READ } else { most })
        .query_if("executor", parameters.executor)
        .query_if("attempt", parameters.attempt);
    let mut response = api.open(&call).await?;
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (source, is_cut) = (header("sparkgate-log-source"), header("sparkgate-log-cut").is_some());
    let broken = |error| Error::Broken { action: call.action().to_owned(), cause: root(&error) };
    let mut excerpt = Excerpt::new(search, most as usize);
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        if !excerpt.take(&piece) {
            break;
        }
    }
    excerpt.finish();
    let mut about = json!({
        "id": id.as_str(),
        "source": match source.as_deref() {
            Some("kept") => "the part that was kept: the pod is gone",
            Some("store") => "the store of logs",
            Some("collector") => "the operator's collector of logs",
            _ => "the pod",
        },
        "lines": excerpt.len(),
    });
    match search {
        Some(search) => {
            about["search"] = search.into();
            about["matches"] = excerpt.found.into();
            about["searchedLines"] = excerpt.read.into();
        }
        None => about["tail"] = most.into(),
    }
    if is_cut || excerpt.is_cut {
        about["incomplete"] = true.into();
    }
    Ok((about, excerpt.text()))
}

async fn compared(api: Client, a: &str, b: &str) -> Result<Value, Error> {
    let api = api?;
    let (a, b) = (run(&api, a).await?, run(&api, b).await?);
    Ok(compare(&a, &b, Utc::now()))
}

async fn run(api: &Api, id: &str) -> Result<Run, Error> {
    let id = resolve(api, id).await?;
    Run::read(api, &id).await
}

async fn usage(api: Client, parameters: &UsageParameters) -> Result<Value, Error> {
    let groups = (!parameters.group_by.is_empty()).then(|| parameters.group_by.join(","));
    let call = Call::get("reading usage", &["usage"])
        .query_if("since", parameters.since.as_ref())
        .query_if("until", parameters.until.as_ref())
        .query_if("groupBy", groups)
        .query_if("tenant", parameters.tenant.as_ref())
        .query_if("owner", parameters.owner.as_ref())
        .query_if("namespace", parameters.namespace.as_ref());
    read(&*api?, &call).await
}

/// Returns the id of a submission that a caller names.
async fn resolve(api: &Api, name: &str) -> Result<SubmissionId, Error> {
    let name: Named = name.parse().map_err(|error| Error::Here(format!("{name:?}: {error}")))?;
    name.resolved(api).await
}

async fn submission(api: &Api, id: &SubmissionId) -> Result<Value, Error> {
    read(api, &Call::get(format!("asking for {id}"), &["submissions", id.as_str()])).await
}

async fn request(api: &Api, id: &SubmissionId) -> Result<Value, Error> {
    read(api, &Call::get(format!("asking for the request of {id}"), &["submissions", id.as_str(), "request"])).await
}

async fn read(api: &Api, call: &Call) -> Result<Value, Error> {
    document::read(call.action(), &api.send(call).await?.body)
}
