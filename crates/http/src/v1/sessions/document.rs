//! A session as the API represents it, and a request for one.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::v1::queues::requeue::check_priority;
use sparkgate_service::{ConnectSettings, OpenSession, SessionOptions, SessionState, SubmissionOptions};
use sparkgate_spark::{CreateSubmissionRequest, SparkVersion, rest::refused_properties};
use sparkgate_web::{
    json::{self, Text},
    problem::{Code, Problem, pointer::pointer},
};

/// The name of a session whose request names none.
const DEFAULT: &str = "default";

/// A session to open. Every field is optional.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"name": "notebook", "sparkProperties": {"spark.executor.memory": "4g"}, "idleTimeoutSeconds": 1800}))]
pub(in crate::v1) struct NewSession {
    /// Its name among the caller's live sessions, or among the shared ones of its tenant: `default` without it. Up to 63 letters, digits, hyphens, underscores and dots.
    #[schema(example = "notebook")]
    name: Option<String>,
    /// Members of the tenant that may submit may use it, too, if the tenant's operator permits that.
    #[serde(default)]
    shared: bool,
    /// Properties of its driver. Without executors or dynamic allocation in them, it allocates up to ten executors dynamically.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    spark_properties: BTreeMap<String, Text>,
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    environment_variables: BTreeMap<String, Text>,
    /// The Spark release, or its line: 4.0 or later.
    #[schema(value_type = Option<String>, example = "4.3")]
    spark_version: Option<Text>,
    /// The queue that has to admit it.
    #[schema(value_type = Option<String>)]
    queue: Option<Text>,
    /// Its priority among the submissions of its tenant in that queue.
    #[schema(minimum = 0, maximum = 1000)]
    priority: Option<i32>,
    /// Labels of its submission.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// End the session after so long without a request of a client.
    #[schema(minimum = 60)]
    idle_timeout_seconds: Option<u64>,
    /// End it if its driver isn't running this long after it was queued.
    #[schema(minimum = 1)]
    start_timeout_seconds: Option<u64>,
    /// End it this long after its driver started, whether it is used or not.
    #[schema(minimum = 1)]
    run_timeout_seconds: Option<u64>,
    /// The template of the driver's pod: as for a submission.
    driver_pod_template: Option<serde_json::Value>,
    /// The template of executors' pods.
    executor_pod_template: Option<serde_json::Value>,
}

/// Parses the body of a request for a session; an empty one asks for nothing special.
pub(super) fn parse(
    body: &[u8],
    version: SparkVersion,
    idle_timeout: Duration,
) -> Result<(CreateSubmissionRequest, SubmissionOptions), Problem> {
    let (session, mut errors) = json::read::<NewSession>(json::object(body)?, "a session");
    let Some(session) = session else { return Err(Problem::for_fields(Code::InvalidRequest, errors)) };
    if let Err(problem) = check_priority(session.priority) {
        errors.extend(problem.errors);
    }
    let texts = |texts: BTreeMap<String, Text>| -> BTreeMap<String, String> {
        texts.into_iter().map(|(key, Text(text))| (key, text)).collect()
    };
    let request = CreateSubmissionRequest {
        spark_properties: texts(session.spark_properties),
        environment_variables: texts(session.environment_variables),
        driver_pod_template: session.driver_pod_template,
        executor_pod_template: session.executor_pod_template,
        ..CreateSubmissionRequest::default()
    };
    let refused = refused_properties(&request.spark_properties, version).into_iter();
    errors.extend(refused.flat_map(|refusal| Problem::field(pointer(&refusal.field), refusal.reason).errors));
    if !errors.is_empty() {
        return Err(Problem::for_fields(Code::InvalidRequest, errors));
    }
    let options = SubmissionOptions {
        labels: session.labels,
        start_timeout: session.start_timeout_seconds.map(Duration::from_secs),
        run_timeout: session.run_timeout_seconds.map(Duration::from_secs),
        spark_version: session.spark_version.map(|Text(version)| version),
        queue: session.queue.map(|Text(queue)| queue),
        priority: session.priority,
        session: Some(SessionOptions {
            name: session.name.unwrap_or_else(|| DEFAULT.to_owned()),
            is_shared: session.shared,
            idle_timeout: session.idle_timeout_seconds.map_or(idle_timeout, Duration::from_secs),
        }),
        ..SubmissionOptions::default()
    };
    Ok((request, options))
}

/// A session of Spark Connect.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct ConnectSession {
    /// The id of the session, and of its submission.
    #[schema(example = "driver-20260102030405-0000")]
    id: String,
    #[schema(example = "notebook")]
    name: String,
    state: StateWord,
    /// What it waits for, or why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The connection string of a client, without credentials: add `;token=…`. Absent once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "sc://connect.example.org:15002/;use_ssl=true;x-sparkgate-session=driver-20260102030405-0000")]
    url: Option<String>,
    #[schema(example = "analytics")]
    tenant: String,
    /// The principal that opened it: the only one that can connect to it, unless it is shared.
    #[schema(example = "corp:alice")]
    principal: String,
    /// Members of its tenant may connect to it, too.
    shared: bool,
    #[schema(example = "spark")]
    namespace: String,
    #[schema(example = "4.3.0")]
    spark_version: String,
    created_at: DateTime<Utc>,
    /// The last request of a client, accurate to about ten seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<DateTime<Utc>>,
    /// It is ended after so long without a request.
    #[schema(example = 1800)]
    idle_timeout_seconds: u64,
    /// When it will be ended, unless a client uses it. Only while its driver runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_at: Option<DateTime<Utc>>,
}

/// `OPENING`: its driver is being started; `READY`: clients can connect; `ENDED`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schema(as = ConnectSessionState)]
pub(in crate::v1) enum StateWord {
    Opening,
    Ready,
    Ended,
}

/// Sessions, the newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConnectSessionList)]
pub(in crate::v1) struct SessionList {
    pub(super) items: Vec<ConnectSession>,
}

impl ConnectSession {
    /// `host` is the name under which the client reaches the gateway: clients of the session use it, too, unless the operator has
    /// another one for them.
    pub(super) fn new(open: OpenSession, settings: &ConnectSettings, host: Option<&str>) -> Self {
        let idle_at = open.idle_at();
        let OpenSession { session, state, message } = open;
        let submission = session.submission;
        let id = submission.id.to_string();
        let state = match state {
            SessionState::Opening => StateWord::Opening,
            SessionState::Ready => StateWord::Ready,
            SessionState::Ended => StateWord::Ended,
        };
        let url = match state {
            StateWord::Ended => None,
            StateWord::Opening | StateWord::Ready => settings.connection_string(host, &submission.id),
        };
        Self {
            name: session.name,
            message,
            url,
            tenant: submission.tenant,
            principal: submission.principal,
            shared: session.is_shared,
            namespace: submission.namespace,
            spark_version: submission.spark_version,
            created_at: submission.created_at,
            last_used_at: session.used_at,
            idle_timeout_seconds: session.idle_timeout.as_secs(),
            idle_at,
            state,
            id,
        }
    }
}
