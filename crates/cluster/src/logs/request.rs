//! Sends one request for a log. kube's own client would pass on neither the status nor the body of a refusal.

use futures::{StreamExt, TryStreamExt};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::{Client, client::Body, core::Status};

use super::LogAnswer;
use crate::{
    answer::{page, sort},
    error::Error,
};

/// Bytes of a refusal's body that are read.
const REFUSAL_BYTES: usize = 64 << 10;
/// The kubelet's messages for a container that has not started yet, or never did (`validateContainerLogStatus`).
const NOT_STARTED: [&str; 3] = ["is waiting to start", "is not available", "is terminated"];

/// Sends the request for the log of a pod and sorts the response.
///
/// # Errors
/// The API server refused the request, or did not answer.
pub(super) async fn send(
    client: Client,
    request: kube::Result<Request<Vec<u8>>>,
    pod: String,
    action: String,
) -> Result<LogAnswer, Error> {
    let request = request.map_err(|error| sort(action.clone(), error))?;
    let response = client.send(request.map(Body::from)).await.map_err(|error| sort(action.clone(), error))?;
    let status = response.status();
    if status == StatusCode::NO_CONTENT {
        return Ok(LogAnswer::NotStarted("the pod has no node yet".to_owned()));
    }
    let body = response.into_body();
    if status.is_success() {
        let broken = move |error: kube::Error| sort(action.clone(), error);
        return Ok(LogAnswer::Log(body.into_data_stream().map_err(broken).boxed()));
    }
    let said = Limited::new(body, REFUSAL_BYTES).collect().await.map(|said| said.to_bytes()).unwrap_or_default();
    let Ok(said) = serde_json::from_slice::<Status>(&said) else {
        return Err(page(action, status.as_u16(), &String::from_utf8_lossy(&said)));
    };
    match sort(action, kube::Error::Api(said.boxed())) {
        Error::Refused { code: 400, message, .. } if NOT_STARTED.iter().any(|words| message.contains(words)) => {
            Ok(LogAnswer::NotStarted(message))
        }
        // The pod existed a moment ago. Its node has nothing of it any more, or the pod has just been removed.
        Error::NotFound { name, .. } if name == pod => Ok(LogAnswer::Gone),
        error => Err(error),
    }
}
