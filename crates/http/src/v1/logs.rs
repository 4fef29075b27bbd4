//! The logs of drivers and executors.

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use utoipa::IntoParams;

use sparkgate_service::{Error, Log, LogRequest, LogStream, NoLog};
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    compression::Live,
    id::{Id, not_found},
    problem::{Code, Problem, ProblemBody, responses::SubmissionProblems},
    query::{Moment, Query, attempt, flag, parsed},
    session::Caller,
    state::AppState,
};

const SOURCE: HeaderName = HeaderName::from_static("sparkgate-log-source");
const CUT: HeaderName = HeaderName::from_static("sparkgate-log-cut");

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LogQuery {
    /// The id of an executor; the driver by default
    #[serde(deserialize_with = "executor")]
    #[param(minimum = 0)]
    executor: Option<i64>,
    /// Which attempt; the latest by default
    #[serde(deserialize_with = "attempt")]
    #[param(minimum = 1)]
    attempt: Option<i32>,
    /// Only this many of the last lines
    #[serde(deserialize_with = "tail")]
    tail: Option<u64>,
    /// Only lines since this time (RFC 3339), or of this many past seconds
    #[serde(deserialize_with = "since")]
    #[param(value_type = Option<String>)]
    since: Option<DateTime<Utc>>,
    /// Stream the log until its end
    #[serde(deserialize_with = "flag")]
    follow: bool,
    /// Begin each line with the time at which it was written, and a space
    #[serde(deserialize_with = "flag")]
    timestamps: bool,
    /// Only what the application itself wrote: no records of Spark's logger, with the exceptions in them, and no commands of the image's
    /// entrypoint. `tail` counts all lines
    #[serde(rename = "ownOutput", deserialize_with = "flag")]
    #[param(rename = "ownOutput")]
    own_output: bool,
}

/// Read the log of a driver or of an executor
///
/// The log is read from the pod while the pod exists. Afterwards it is read from the gateway's store of logs, or from what the
/// operator's collector wrote. If the gateway has neither, the last part of a driver's log is available, which was kept when the driver
/// ended; an executor's log is deleted with its pod. The text is what the container wrote, byte for byte. `since` and
/// `timestamps` have no effect on a log of a collector.
///
/// With `follow` the response starts when the driver starts and lasts until the driver ends. Every line is sent once, even
/// if connections between the gateway and the cluster break meanwhile. A response that is cut off instead of ended is
/// incomplete.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/logs", tag = "Submissions", operation_id = "readLog",
    params(Id, LogQuery),
    responses(
        SubmissionProblems,
        (status = 200, description = "The log", body = String, content_type = "text/plain",
         headers(
            ("Sparkgate-Log-Source" = String, description = "Where the log was read: `pod`; `store`, the gateway's store of logs; `collector`, that of the operator's collector; `kept`, the last part, in the database"),
            ("Sparkgate-Log-Cut" = String, description = "`true` if lines are missing: only the last part was kept, or the end was not stored"),
         )),
        (status = 404, description = "There is no such submission, attempt or executor, or it has no log yet, or no longer", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many logs are being read; try again", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database, the cluster or the pod's node can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn logs(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    Query(query): Query<LogQuery>,
) -> Result<Response, Problem> {
    let LogQuery { executor, attempt, tail, since, follow, timestamps, own_output } = query;
    let request = LogRequest { executor, attempt, tail, since, follow, timestamps, own_output };
    match state.service.logs.log(&caller, &id, &request).await? {
        Log::Stream(log) if follow => {
            let end = state.service.authenticator.clone().end_of(caller);
            let log = LogStream { bytes: cut_off_at(end, log.bytes), ..log };
            Ok((Extension(Live), answer(log)).into_response())
        }
        Log::Stream(log) => Ok(answer(log)),
        Log::None(why) => Err(no_log(&id, &request, why)),
    }
}

/// Ends a log with an error once `end` completes, so that the reader knows that it is incomplete.
fn cut_off_at(
    end: impl Future<Output = ()> + Send + 'static,
    log: BoxStream<'static, Result<Bytes, Error>>,
) -> BoxStream<'static, Result<Bytes, Error>> {
    stream::unfold(Some((log, Box::pin(end))), async |open| {
        let (mut log, mut end) = open?;
        tokio::select! {
            part = log.next() => Some((part?, Some((log, end)))),
            () = &mut end => Some((Err(Error::Denied("the caller's credentials have ended".to_owned())), None)),
        }
    })
    // A body may be polled again after its end.
    .fuse()
    .boxed()
}

pub(crate) fn executor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    parsed(deserializer, "the id of an executor").map(Some)
}

/// Reads the number of lines, up to the largest integer of JSON and of Kubernetes.
fn tail<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let lines: u64 = parsed(deserializer, "a number of lines")?;
    match i64::try_from(lines) {
        Ok(_) => Ok(Some(lines)),
        Err(_) => Err(D::Error::custom(format!("{lines} is too large"))),
    }
}

fn since<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let ago = text.parse::<u32>().map(|seconds| Utc::now() - TimeDelta::seconds(seconds.into()));
    let time = ago.or_else(|_| text.parse().map(|Moment(time)| time)).map(Some);
    time.map_err(|_| {
        let wrong = "neither a time such as 2026-01-02T03:04:05Z, nor a date, nor a number of seconds";
        D::Error::custom(format!("{text:?} is {wrong}"))
    })
}

fn answer(log: LogStream) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(SOURCE, HeaderValue::from_static(log.source.as_str()));
    if log.cut {
        headers.insert(CUT, HeaderValue::from_static("true"));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The content is untrusted output of a job: a browser must not interpret it as a page.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    (headers, Body::from_stream(log.bytes)).into_response()
}

/// Returns why there is no log, as a problem.
pub(crate) fn no_log(id: &SubmissionId, request: &LogRequest, why: NoLog) -> Problem {
    let not_found_log = |detail: String| Problem::new(Code::LogNotFound, detail);
    match why {
        NoLog::Submission => not_found(id),
        NoLog::Attempt => not_found_log(format!("{id} has no attempt {}.", request.attempt.unwrap_or_default())),
        NoLog::Executor => {
            let executor = request.executor.unwrap_or_default();
            Problem::new(
                Code::ExecutorNotFound,
                format!("{id} has no executor {executor} that was seen in the cluster."),
            )
        }
        NoLog::NotStarted(why) => not_found_log(format!(
            "The container hasn't started: {why}. With follow=true the request waits until it does."
        )),
        NoLog::NeverStarted => not_found_log(format!("{id} ended before it started: see its `failure`.")),
        NoLog::Gone => not_found_log("The pod is gone, and its log was not kept.".to_owned()),
        NoLog::ExecutorGone => not_found_log("The executor's pod is gone, and its log was not stored.".to_owned()),
        NoLog::Limited(exceeded) => exceeded.into(),
        NoLog::Busy => Problem::new(Code::TooManyRequests, "Too many logs are being read at once; try again."),
    }
}
