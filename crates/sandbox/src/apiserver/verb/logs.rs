//! GET …/pods/{name}/log: requests the log from the kubelet of the pod's node.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::net::TcpStream;

use super::super::call::Call;
use super::super::failure::{Answer, Failure};
use super::super::object::{Key, list, text};
use super::super::resource::{NODES, PODS};

/// Timeout for the connection to a kubelet and its response headers.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of a kubelet's error text that are passed on.
const ERROR_BYTES: usize = 64 << 10;

pub(in super::super) async fn logs(call: &Call) -> Answer<Response> {
    let key = call.key()?;
    let (pod, node) = call.server.store.read(|state| {
        let pod = state.get(&key).cloned().ok_or_else(|| Failure::not_found(&PODS, &key.name))?;
        let node = state.get(&Key::new(&NODES, "", text(&pod.value, "/spec/nodeName"))).cloned();
        Ok::<_, Failure>((pod, node))
    })?;
    let container = container(&pod.value, &key.name, call.options.text("container"))?;
    let name = text(&pod.value, "/spec/nodeName");
    if name.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response()); // the pod has no node yet
    }
    let node = node.ok_or_else(|| Failure::not_found(&NODES, name))?;
    let (host, port) = kubelet(&node.value)
        .ok_or_else(|| Failure::internal(format!("node \"{name}\" has no address and port of its kubelet")))?;
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let query: Vec<String> = call
        .options
        .without(&["container"])
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    let uri = format!("/containerLogs/{}/{}/{container}?{}", key.namespace, key.name, query.join("&"));
    let unreachable = |why: String| Failure::internal(format!("Get \"http://{host}:{port}{uri}\": {why}"));
    let response = tokio::time::timeout(CONNECT, request(&host, port, &uri))
        .await
        .map_err(|_| unreachable("no answer in time".into()))?
        .map_err(|error| unreachable(error.to_string()))?;
    pass_on(call, &key.name, response).await
}

/// Returns the requested container, which may be left out if the pod has only one.
fn container(pod: &Value, pod_name: &str, asked: &str) -> Answer<String> {
    let names = |pointer: &str| list(pod, pointer).iter().map(|container| text(container, "/name").to_owned());
    let mut all: Vec<String> = names("/spec/containers").collect();
    if asked.is_empty() && all.len() != 1 {
        let choices = all.join(" ");
        return Err(Failure::bad_request(format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{choices}]"
        )));
    }
    if asked.is_empty() {
        return Ok(all.remove(0));
    }
    let known = all.iter().any(|name| name == asked) || names("/spec/initContainers").any(|name| name == asked);
    if known {
        Ok(asked.to_owned())
    } else {
        Err(Failure::bad_request(format!("container {asked} is not valid for pod {pod_name}")))
    }
}

/// Returns the kubelet's address and port from the node's status.
fn kubelet(node: &Value) -> Option<(String, u16)> {
    let address = |kind: &str| {
        let found = list(node, "/status/addresses").iter().find(|address| text(address, "/type") == kind)?;
        Some(text(found, "/address").to_owned())
    };
    let port = node.pointer("/status/daemonEndpoints/kubeletEndpoint/Port")?.as_u64()?;
    let host = address("InternalIP").or_else(|| address("Hostname"))?;
    Some((host, u16::try_from(port).ok().filter(|port| *port > 0)?))
}

async fn request(host: &str, port: u16, uri: &str) -> anyhow::Result<hyper::Response<Incoming>> {
    let stream = TcpStream::connect((host, port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection); // ends with the response's body, which holds the other end
    let request = Request::get(uri).header(header::HOST, format!("{host}:{port}")).body(Empty::<Bytes>::new())?;
    Ok(sender.send_request(request).await?)
}

async fn pass_on(call: &Call, pod: &str, response: hyper::Response<Incoming>) -> Answer<Response> {
    let (parts, body) = response.into_parts();
    if parts.status.is_success() {
        let shutdown = call.server.shutdown.clone();
        let bytes = body.into_data_stream().take_until(async move { shutdown.cancelled().await });
        return Ok(([(header::CONTENT_TYPE, "text/plain")], Body::from_stream(bytes)).into_response());
    }
    let text = Limited::new(body, ERROR_BYTES).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Err(Failure::from_kubelet(pod, parts.status, String::from_utf8_lossy(&text).trim().to_owned()))
}
