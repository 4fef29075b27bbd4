//! One parsed request, which every verb takes, and the form of the answers.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::Apiserver;
use super::collect::collect;
use super::failure::{Answer, Failure};
use super::object::{Key, Object};
use super::options::Options;
use super::resource::Resource;
use super::store::State;
use super::target::Target;

/// The largest body that is read, as in kube-apiserver.
const BODY_BYTES: usize = 3 << 20;

pub(super) struct Call {
    pub(super) server: Apiserver,
    pub(super) target: Target,
    pub(super) options: Options,
    pub(super) body: Bytes,
    headers: HeaderMap,
}

impl Call {
    /// Reads a request.
    ///
    /// # Errors
    /// The query or the body cannot be read.
    pub(super) async fn read(server: Apiserver, target: Target, request: Request) -> Answer<Self> {
        let (parts, body) = request.into_parts();
        let options = Options::parse(&parts.uri)?;
        let body = axum::body::to_bytes(body, BODY_BYTES)
            .await
            .map_err(|_| Failure::too_large(format!("Request entity too large: limit is {BODY_BYTES}")))?;
        Ok(Self { server, target, options, body, headers: parts.headers })
    }

    /// Returns the key of the object that the path names.
    pub(super) fn key(&self) -> Answer<Key> {
        let name = self.target.name.as_deref().ok_or_else(Failure::method_not_allowed)?;
        Ok(Key::new(self.target.resource, self.target.namespace.as_deref().unwrap_or_default(), name))
    }

    /// Returns the media type of the body, which is JSON by default.
    pub(super) fn media_type(&self) -> &str {
        let header = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        header.map_or("application/json", |value| value.split(';').next().unwrap_or_default().trim())
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// The body has another media type, or is not JSON.
    pub(super) fn json(&self) -> Answer<Value> {
        let media_type = self.media_type();
        if !media_type.ends_with("json") && media_type != "application/apply-patch+yaml" {
            return Err(Failure::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: application/json ({media_type} was sent)"
            )));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {error}",
                self.target.resource.kind
            ))
        })
    }

    /// Runs a write, and then the garbage collector.
    ///
    /// # Errors
    /// Returns the errors of `write`.
    pub(super) fn write<T>(&self, write: impl FnOnce(&mut State) -> Answer<T>) -> Answer<T> {
        self.server.store.write(|state| {
            let result = write(state);
            collect(state);
            result
        })
    }
}

/// Returns the answer with one object.
pub(super) fn answer(status: StatusCode, object: &Object) -> Response {
    json_answer(status, Body::from(object.json.clone()))
}

/// Returns the answer with a list, built from the objects' own bytes.
pub(super) fn list_answer<'a>(
    resource: &Resource,
    metadata: &Value,
    items: impl Iterator<Item = &'a Bytes>,
) -> Response {
    let mut json = format!(
        "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
        resource.kind,
        resource.api_version()
    )
    .into_bytes();
    for (index, item) in items.enumerate() {
        if index > 0 {
            json.push(b',');
        }
        json.extend_from_slice(item);
    }
    json.extend_from_slice(b"]}");
    json_answer(StatusCode::OK, Body::from(json))
}

fn json_answer(status: StatusCode, body: Body) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
