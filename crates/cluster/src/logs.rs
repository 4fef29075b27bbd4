//! The log of a pod's Spark container, from the kubelet of its node, through the API server.

mod request;

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{FutureExt, StreamExt, TryFutureExt, stream, stream::BoxStream};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Resource, api::LogParams, core::Request};

use super::{
    answer::nothing_of_kubernetes,
    call::{find, in_time},
    cluster::Cluster,
    error::Error,
    executor_pod::CONTAINER as EXECUTOR,
    observe::{container, driver_container, phase},
    slim_pod::SlimPod,
};
use sparkgate_submission::{Container, Phase};

const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for the kubelet's answer, and for the next piece of a log that it has already. It doesn't apply to a follow: for a
/// container that writes nothing, the kubelet doesn't send even the start of a response.
const SILENCE: Duration = Duration::from_secs(10);

/// The pod whose log is read.
#[derive(Debug, Clone, Copy)]
pub struct LogOf<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    /// A later pod of the same name may belong to another user.
    pub uid: &'a str,
}

/// The part of the log that is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogPart {
    /// Read on until the container ends.
    pub follow: bool,
    /// Only this many last lines.
    pub tail: Option<u64>,
    /// Only lines since this time. The API takes whole seconds, so some earlier lines may be included.
    pub since: Option<DateTime<Utc>>,
    /// Maximum number of bytes, counted from the first byte of the part.
    pub limit: Option<usize>,
}

/// A log in pieces of any size. Each line begins with the time at which the node received it (RFC 3339 with nanoseconds)
/// and a space. The rest of the line is what the container wrote: any bytes.
pub type LogBytes = BoxStream<'static, Result<Bytes, Error>>;

/// The answer to a request for a log.
pub enum LogAnswer {
    Log(LogBytes),
    /// The container hasn't started, for this reason.
    NotStarted(String),
    /// There is no such pod.
    Gone,
}

impl Cluster {
    /// Opens a log. Dropping the stream closes it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the API server or the pod's node doesn't answer. The stream may end with it, too.
    pub async fn log(&self, of: &LogOf<'_>, part: &LogPart) -> Result<LogAnswer, Error> {
        let LogOf { namespace, pod, uid } = *of;
        let client = self.reading().clone();
        let pods: Api<SlimPod> = Api::namespaced(client.clone(), namespace);
        let there = find(format!("reading the pod {namespace}/{pod}"), TIMEOUT, pod, pods.get(pod)).await?;
        if there.as_ref().is_some_and(|there| there.metadata.uid.is_none()) {
            return Err(nothing_of_kubernetes(format!("reading the pod {namespace}/{pod}")));
        }
        let Some(there) = there.filter(|there| there.metadata.uid.as_deref() == Some(uid)) else {
            return Ok(LogAnswer::Gone);
        };
        let name = spark_container(&there);
        if let Some(why) = not_started(&there, name) {
            return Ok(LogAnswer::NotStarted(why));
        }
        let action = format!("reading the log of the pod {namespace}/{pod} from its node");
        let request = Request::new(SlimPod::url_path(&(), Some(namespace))).logs(pod, &params(part, name));
        let answer = request::send(client, request.map_err(kube::Error::BuildRequest), pod.to_owned(), action.clone());
        if part.follow {
            let name = pod.to_owned();
            let bytes = answer.map(move |answer| match answer? {
                LogAnswer::Log(bytes) => Ok(bytes),
                LogAnswer::NotStarted(message) => Err(Error::NotFound { action, name, message }),
                LogAnswer::Gone => Err(Error::NotFound { action, name, message: "the pod is gone".to_owned() }),
            });
            return Ok(LogAnswer::Log(bytes.try_flatten_stream().boxed()));
        }
        Ok(match in_time(&action, SILENCE, answer).await?? {
            LogAnswer::Log(bytes) => LogAnswer::Log(never_silent(bytes, action)),
            other => other,
        })
    }
}

/// Returns a stream that ends with an error if the next piece of a log that is already there doesn't arrive in time.
fn never_silent(bytes: LogBytes, action: String) -> LogBytes {
    let next = async move |(mut bytes, action): (LogBytes, String)| {
        let piece = in_time(&action, SILENCE, bytes.next()).await?.transpose()?;
        Ok(piece.map(|piece| (piece, (bytes, action))))
    };
    stream::try_unfold((bytes, action), next).boxed()
}

fn params(part: &LogPart, container: Option<&str>) -> LogParams {
    LogParams {
        container: container.map(str::to_owned),
        follow: part.follow,
        tail_lines: part.tail.map(|lines| i64::try_from(lines).unwrap_or(i64::MAX)),
        // Only whole seconds: kube's client would round a fraction up.
        since_time: part.since.and_then(|since| Timestamp::from_second(since.timestamp()).ok()),
        limit_bytes: part.limit.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
        timestamps: true,
        ..LogParams::default()
    }
}

/// Returns the driver's container as noted at creation, or the executor's; the last container where neither has its usual name.
fn spark_container(pod: &SlimPod) -> Option<&str> {
    let names = || pod.spec.containers.iter().map(|container| container.name.as_str());
    driver_container(pod).or_else(|| names().find(|name| *name == EXECUTOR)).or_else(|| names().next_back())
}

fn not_started(pod: &SlimPod, name: Option<&str>) -> Option<String> {
    match container(pod, name) {
        Container::Waiting { reason, message } => {
            let reason = reason.unwrap_or_else(|| "Waiting".to_owned());
            Some(message.map_or_else(|| reason.clone(), |message| format!("{reason}: {message}")))
        }
        Container::Absent if phase(pod.status.phase.as_deref()) == Phase::Pending => Some(
            if pod.spec.node_name.is_some() {
                "its node has not begun to prepare it"
            } else {
                "the pod has no node yet"
            }
            .to_owned(),
        ),
        Container::Absent | Container::Running { .. } | Container::Terminated { .. } => None,
    }
}
