//! The routing table: method and form of the path → verb.

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::Apiserver;
use super::call::Call;
use super::discovery::discover;
use super::failure::{Answer, Failure};
use super::review;
use super::target::Target;
use super::verb::update::Part;
use super::verb::{bind, create, delete, list, logs, update, watch};

/// Answers every request.
pub(super) async fn serve(State(server): State<Apiserver>, request: Request) -> Response {
    let path = request.uri().path();
    if let Some(response) = discover(path) {
        return response;
    }
    if path == review::PATH && request.method() == Method::POST {
        return review::review(request.into_body()).await;
    }
    if path == review::WHO && request.method() == Method::POST {
        return review::who(request.into_body()).await;
    }
    match Target::parse(path) {
        Some(target) => dispatch(server, target, request).await.unwrap_or_else(Failure::into_response),
        None if path.starts_with("/api/v1/") || path.starts_with("/apis/networking.k8s.io/v1/") => {
            Failure::no_such_resource().into_response()
        }
        None => (StatusCode::NOT_FOUND, "404 page not found\n").into_response(),
    }
}

async fn dispatch(server: Apiserver, target: Target, request: Request) -> Answer<Response> {
    let (mut parts, body) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await.ok();
    let method = parts.method.clone();
    let call = Call::read(server, target, Request::from_parts(parts, body)).await?;
    let Target { resource, namespace, name, subresource } = &call.target;
    let pod = resource.plural == "pods";
    match (method, name.is_some(), subresource.as_deref()) {
        (Method::GET, _, None) if call.options.flag("watch") => watch::watch(&call, upgrade),
        (Method::GET, false, None) => list::list(&call),
        (Method::POST, false, None) if resource.namespaced == namespace.is_some() => create::create(&call),
        (Method::DELETE, false, None) if namespace.is_some() => delete::delete_collection(&call),

        (Method::GET, true, None) => list::get(&call),
        (Method::PUT, true, None) => update::put(&call, Part::Main),
        (Method::PATCH, true, None) => update::patch(&call, Part::Main),
        (Method::DELETE, true, None) => delete::delete(&call),

        (Method::GET, true, Some("status")) if resource.status => list::get(&call),
        (Method::PUT, true, Some("status")) if resource.status => update::put(&call, Part::Status),
        (Method::PATCH, true, Some("status")) if resource.status => update::patch(&call, Part::Status),
        (Method::POST, true, Some("binding")) if pod => bind::bind(&call),
        (Method::GET, true, Some("log")) if pod => logs::logs(&call).await,

        (_, _, None | Some("status")) => Err(Failure::method_not_allowed()),
        _ => Err(Failure::no_such_resource()),
    }
}
