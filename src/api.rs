//! The HTTP layer: routes and the middleware of every request. Handlers translate; the service below decides.

use std::convert::Infallible;

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{Method, Uri},
    middleware::{from_fn, from_fn_with_state, map_response},
    response::Response,
};
use tower::ServiceExt;

use crate::service::Service;
use body::Bodies;
use compression::{compress, without_length_of_nothing};
use faces::{Face, Faces};
use request_log::RequestId;
use state::AppState;

mod audit;
mod authn;
mod body;
mod browser;
mod catch_panic;
mod compression;
mod console;
mod cookies;
mod counted_bytes;
mod faces;
mod fetch_metadata;
mod health;
mod home;
mod host;
mod id;
mod idempotency_key;
mod json;
mod kubeflow;
mod livy;
mod nowhere;
mod openapi;
mod page_headers;
mod problem;
mod query;
mod request_log;
mod route_template;
mod server;
mod server_span;
mod session;
mod session_cookie;
mod settings;
mod spark;
mod spark_ui;
mod startup;
mod state;
mod suggest;
mod tasks;
mod time_limit;
mod v1;

pub use health::management_router;
pub use openapi::openapi;
pub use server::{NetworkError, ServerSettings, Tls, TlsError, TlsFiles, TrustedProxies, serve};
pub use settings::{BrowserSettings, HttpSettings, OriginError};
pub use startup::StartupRouter;
pub(crate) use suggest::closest;
pub use v1::audit_line;
#[doc(hidden)]
pub use v1::fuzzing;

/// Returns the router of the gateway's port. Paths without a route go to Spark's protocol, which answers every path.
///
/// # Errors
/// An origin of the settings that can't be used.
pub fn router(service: Service, settings: HttpSettings) -> Result<Router, OriginError> {
    let faces = Faces::all(service.submissions.spark_version(), settings.livy_prefix.as_deref());
    let (browser, authenticator) = (settings.browser.clone(), service.authenticator.clone());
    let names = authenticator.clone();
    let audit = service.audit.clone();
    let state = AppState { bodies: Bodies::new(&settings), service, settings };
    let routers = Routers {
        resources: v1::router(state.clone()),
        console: console::router(state.clone()),
        livy: livy::router(state.clone(), faces.livy_prefix()),
        faces: faces.clone(),
    };
    let (all, apart, uis) = (state.clone(), state.clone(), spark_ui::router(state.clone()));
    let router = Router::from(openapi::probes())
        .merge(openapi::page().layer(from_fn(compress)))
        .fallback(move |Extension(id), request| dispatch(all.clone(), routers.clone(), id, request))
        .with_state(state)
        .layer(from_fn_with_state(
            authn::Authentication { authenticator, audit, faces: faces.clone() },
            authn::authenticate,
        ));
    let router = browser::guard(router, &browser, faces.clone(), names)?;
    let router = uis.fallback_service(router).layer(from_fn_with_state(apart, spark_ui::keep_apart));
    Ok(enclosed(router, faces))
}

/// Returns the router of the port for clients of Spark's protocol that send no credentials: stock `spark-submit`. It serves that
/// protocol only, and every caller is the principal that the access file names.
///
/// # Errors
/// An origin of the settings that can't be used.
pub fn spark_listener(service: Service, settings: HttpSettings) -> Result<Router, OriginError> {
    let faces = Faces::all(service.submissions.spark_version(), None);
    let (browser, authenticator) = (settings.browser.clone(), service.authenticator.clone());
    let names = authenticator.clone();
    let audit = service.audit.clone();
    let state = AppState { bodies: Bodies::new(&settings), service, settings };
    let serve = async move |State(state): State<AppState>, Extension(id): Extension<RequestId>, request: Request| {
        spark::serve(&state, &id, request).await
    };
    let authentication = authn::Authentication { authenticator, audit, faces: faces.clone() };
    let router = Router::new()
        .fallback(serve)
        .with_state(state)
        .layer(from_fn_with_state(authentication, authn::of_spark_listener));
    Ok(enclosed(browser::guard(router, &browser, faces.clone(), names)?, faces))
}

/// Returns the router of the port for clients of Livy. It serves Livy's batches only, at its root.
///
/// # Errors
/// An origin of the settings that can't be used.
pub fn livy_listener(service: Service, settings: HttpSettings) -> Result<Router, OriginError> {
    let faces = Faces::of_livy(service.submissions.spark_version());
    let (browser, authenticator) = (settings.browser.clone(), service.authenticator.clone());
    let names = authenticator.clone();
    let audit = service.audit.clone();
    let state = AppState { bodies: Bodies::new(&settings), service, settings };
    let authentication = authn::Authentication { authenticator, audit, faces: faces.clone() };
    let router = livy::router(state, "").layer(from_fn_with_state(authentication, authn::authenticate));
    Ok(enclosed(browser::guard(router, &browser, faces.clone(), names)?, faces))
}

/// Returns the router of the port for drivers and executors: signed URLs of files, and nothing else. What runs in a driver is code of
/// users, so its network needs no way to the APIs. A URL needs no credentials: its signature is one.
pub fn files_listener(service: Service, settings: HttpSettings) -> Router {
    let faces = Faces::all(service.submissions.spark_version(), None);
    let state = AppState { bodies: Bodies::new(&settings), service, settings };
    enclosed(v1::signed_files(state), faces)
}

/// Puts around a router what every request of clients passes.
fn enclosed(router: Router, faces: Faces) -> Router {
    // The last is the outermost: every answer, that to a panic included, gets its id and its line in the log.
    let router = router.layer(from_fn_with_state(faces, catch_panic::catch_panic));
    request_log::logged(server_span::traced(router.layer(map_response(page_headers::add))))
}

/// The routers of the APIs that have one.
#[derive(Clone)]
struct Routers {
    faces: Faces,
    resources: Router,
    console: Router,
    livy: Router,
}

/// Dispatches a request to the API that its path belongs to.
async fn dispatch(state: AppState, routers: Routers, id: RequestId, request: Request) -> Response {
    let is_head = request.method() == Method::HEAD;
    match routers.faces.of(request.uri().path()) {
        face @ (Face::Resources | Face::Console) => {
            let router = if face == Face::Console { routers.console } else { routers.resources };
            let response = answer_of(router, request).await;
            if is_head { without_length_of_nothing(response) } else { response }
        }
        Face::Livy => answer_of(routers.livy, without_prefix(request, routers.faces.livy_prefix())).await,
        Face::Kubeflow => kubeflow::serve(&state, request).await,
        Face::Spark => match home::answer(&request, &id) {
            Some(answer) => answer,
            None => spark::serve(&state, &id, request).await,
        },
    }
}

async fn answer_of(router: Router, request: Request) -> Response {
    let answer: Result<Response, Infallible> = router.oneshot(request).await;
    let Ok(response) = answer;
    response
}

/// Removes the beginning of a request's path.
fn without_prefix(mut request: Request, prefix: &str) -> Request {
    let rest = request.uri().path_and_query().and_then(|whole| whole.as_str().strip_prefix(prefix)?.parse().ok());
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = rest.or(parts.path_and_query);
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    request
}
