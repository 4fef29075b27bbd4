//! The routers of the listeners: which APIs each has, and what a request passes on its way to them.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Request, State},
    middleware::{from_fn, from_fn_with_state, map_response},
    response::Response,
    routing::any,
};

use super::{
    authn::{self, Authentication},
    catch_panic,
    console::{self, Console},
    health, home,
    kubeflow::{self, Kubeflow},
    livy::{self, LivyFace},
    openapi,
    spark::{self, SparkFace},
    spark_ui,
    v1::{self, Resources},
};
use sparkgate_service::Service;
use sparkgate_web::{
    body::Bodies,
    browser,
    compression::compress,
    face::AnyFace,
    inner, page_headers,
    request_log::{self, RequestId},
    routes::Routes,
    server_span,
    settings::{HttpSettings, OriginError},
    state::AppState,
};

/// Returns the router of the gateway's port. Paths without a route go to Spark's protocol, which answers every path.
///
/// # Errors
/// An origin of the settings that can't be used.
pub fn router(service: Service, settings: HttpSettings) -> Result<Router, OriginError> {
    let state = state(service, settings);
    let apart = from_fn_with_state(state.clone(), spark_ui::keep_apart);
    let guarded = |routes: Routes<()>, face: AnyFace| {
        let guarded = guarded(&state, routes.map(|router| authenticated(&state, router, &face)), &face)?;
        Ok(caught(guarded.map(|router| router.layer(apart.clone())), &face))
    };
    let spark = spark::routes().merge(health::routes()).merge(openapi::page().layer(from_fn(compress)).into());
    let spark = spark.route("/", any(visited)).map(|router| router.fallback(visited));
    let spark = guarded(spark.with_state(state.clone()), spark_face(&state))?;
    let all = spark
        .clone()
        .merge(guarded(v1::router(state.clone()), Arc::new(Resources))?)
        .merge(guarded(console::router(state.clone()), Arc::new(Console))?)
        .merge(guarded(kubeflow::routes().with_state(state.clone()), Arc::new(Kubeflow))?)
        // A ticket is their only credential.
        .merge(caught(spark_ui::router(state.clone()), &(Arc::new(Resources) as AnyFace)));
    let (spark, all) = (enclosed(spark), enclosed(all));
    Ok(Router::new().fallback(async move |request: Request| {
        let router = if v1::is_of_spark(request.uri().path()) { &spark } else { &all };
        inner::answer(router, request).await
    }))
}

/// Returns the router of the port for clients of Spark's protocol that send no credentials: stock `spark-submit`. It serves that
/// protocol only, and every caller is the principal that the access file names.
///
/// # Errors
/// An origin of the settings that can't be used.
pub fn spark_listener(service: Service, settings: HttpSettings) -> Result<Router, OriginError> {
    let state = state(service, settings);
    let face = spark_face(&state);
    let routes = spark::routes().map(|router| router.fallback(spark::serve)).with_state(state.clone());
    let authentication = from_fn_with_state(authentication(&state, &face), authn::authenticate_spark_listener);
    let routes = guarded(&state, routes.map(|router| router.layer(authentication)), &face)?;
    Ok(enclosed(caught(routes, &face)))
}

/// Returns the router of the port for clients of Livy. It serves Livy's batches only, at its root.
///
/// # Errors
/// An origin of the settings that can't be used.
pub fn livy_listener(service: Service, settings: HttpSettings) -> Result<Router, OriginError> {
    let state = state(service, settings);
    let face: AnyFace = Arc::new(LivyFace);
    let routes = livy::router(state.clone()).map(|router| authenticated(&state, router, &face));
    Ok(enclosed(caught(guarded(&state, routes, &face)?, &face)))
}

/// Returns the router of the port for drivers and executors: signed URLs of files, and nothing else. What runs in a driver is code of
/// users, so its network needs no way to the APIs. A URL needs no credentials: its signature is one.
pub fn files_listener(service: Service, settings: HttpSettings) -> Router {
    let face: AnyFace = Arc::new(Resources);
    enclosed(caught(v1::signed_files_alone(state(service, settings)), &face))
}

fn state(service: Service, settings: HttpSettings) -> AppState {
    AppState { bodies: Bodies::new(&settings), service: Arc::new(service), settings: Arc::new(settings) }
}

fn spark_face(state: &AppState) -> AnyFace {
    Arc::new(SparkFace(state.service.submissions.spark_version()))
}

/// Answers people who look around, and Spark's clients.
async fn visited(State(state): State<AppState>, Extension(id): Extension<RequestId>, request: Request) -> Response {
    match home::answer(&request, &id) {
        Some(answer) => answer,
        None => spark::serve(State(state), Extension(id), request).await,
    }
}

fn authentication(state: &AppState, face: &AnyFace) -> Authentication {
    let (authenticator, audit) = (state.service.authenticator.clone(), state.service.audit.clone());
    Authentication { authenticator, audit, face: face.clone() }
}

fn authenticated(state: &AppState, router: Router, face: &AnyFace) -> Router {
    router.layer(from_fn_with_state(authentication(state, face), authn::authenticate))
}

/// Puts the checks of browsers around the routes of an API.
fn guarded(state: &AppState, routes: Routes<()>, face: &AnyFace) -> Result<Routes<()>, OriginError> {
    let access = state.service.authenticator.clone();
    routes.try_map(|router| browser::guard(router, &state.settings.browser, face.clone(), access))
}

fn caught(routes: Routes<()>, face: &AnyFace) -> Routes<()> {
    routes.map(|router| router.layer(from_fn_with_state(face.clone(), catch_panic::catch_panic)))
}

/// Puts around all routes what every request of clients passes.
fn enclosed(routes: Routes<()>) -> Router {
    // The last is the outermost: every answer, that to a panic included, gets its id and its line in the log.
    routes.within(|router| request_log::logged(server_span::traced(router.layer(map_response(page_headers::add)))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::http::Method;

    use super::*;
    use sparkgate_spark::SparkVersion;
    use sparkgate_web::{
        change::{About, Change},
        face::Face,
        routes::Route,
    };

    fn described() -> Routes {
        v1::routes().merge(spark::routes()).merge(health::routes())
    }

    #[test]
    fn only_probes_the_login_signed_urls_and_assets_of_the_console_are_open() {
        let routes = described().merge(console::routes()).merge(kubeflow::routes()).merge(spark_ui::routes());
        let open: BTreeSet<&str> = routes.open_templates().collect();
        let expected = [
            "/console/assets/{hash}/{file}",
            "/console/sign-in",
            "/console/sign-in/callback",
            "/console/sign-in/key",
            "/console/sign-out",
            "/console/signed-out",
            "/livez",
            "/readyz",
            "/v1/files/{sha256}/{id}/{signature}/{name}",
            "/v1/login",
        ];
        assert_eq!(open, BTreeSet::from(expected));
    }

    #[test]
    fn each_route_with_an_unsafe_method_is_a_change() {
        let routes = described();
        for (template, item) in routes.document().paths.paths {
            let path = template.replace("{id}", "driver-1").replace("{delivery}", "7").replace("{sha256}", "aa");
            let face: AnyFace = match v1::is_of_spark(&path) {
                true => Arc::new(SparkFace(SparkVersion::V4_3)),
                false => Arc::new(Resources),
            };
            for (method, operation) in [
                (Method::POST, item.post),
                (Method::PUT, item.put),
                (Method::PATCH, item.patch),
                (Method::DELETE, item.delete),
            ] {
                let found = face.change(&routes.at(&template), &method, &path);
                assert_eq!(operation.is_some(), found.is_some(), "{method} {template} and its name in the audit");
            }
        }
    }

    #[test]
    fn the_other_apis_have_changes_too() {
        let routes = kubeflow::routes().merge(console::routes());
        let face = |face: &dyn Face, route: Route, method, path: &str| face.change(&route, &method, path);
        let spark = SparkFace(SparkVersion::V4_3);
        let of = |template: &str, method, path: &str| face(&Console, routes.at(template), method, path);
        let of_spark = |method, path: &str| face(&spark, Route::default(), method, path);
        let change = |action, about| Some(Change { action, about });
        let submission = || About::Submission("driver-1".to_owned());
        let (post, put) = (Method::POST, Method::PUT);
        let (submit, kill) = (change("submit", About::Nothing), change("kill", submission()));
        assert_eq!(of(kubeflow::PATH, post.clone(), kubeflow::PATH), submit);
        let (template, path) = ("/console/submissions/{id}/kill", "/console/submissions/driver-1/kill");
        assert_eq!(of(template, post.clone(), path), kill);
        let (template, path) = ("/console/submissions/{id}/rerun", "/console/submissions/driver-1/rerun");
        assert_eq!(of(template, post.clone(), path), change("submit", submission()));
        let path = "/console/submissions/kill";
        assert_eq!(of(path, post.clone(), path), change("kill", About::Nothing));
        assert_eq!(of_spark(post.clone(), "/v1/submissions/kill/driver-1"), kill);
        for (method, path) in
            [(&post, "/v1/submissions/status/driver-1"), (&put, "/v1/submissions/create"), (&post, "/x")]
        {
            assert_eq!(of_spark(method.clone(), path), None, "{method} {path}");
        }
    }

    #[test]
    fn paths_below_that_of_submissions_are_sparks_unless_they_name_one() {
        for (path, is_sparks) in [
            ("/v1/submissions", false),
            ("/v1/submissions/", true),
            ("/v1/submissions/create", true),
            ("/v1/submissions/kill/driver-1", true),
            ("/v1/submissions/driver-1", false),
            ("/v1/submissions/driver-1/events", false),
            ("/v1/submissions/elsewhere/events", true),
            ("/v1/submissionsx", false),
        ] {
            assert_eq!(v1::is_of_spark(path), is_sparks, "{path}");
        }
    }
}
