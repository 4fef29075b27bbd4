//! The server span of a request, by OpenTelemetry's semantic conventions for HTTP. It has neither headers nor a query.

use axum::{
    Extension, Router,
    extract::Request,
    http::{HeaderMap, Method, StatusCode},
    middleware::{Next, from_fn},
    response::Response,
};

use super::{
    request_log::{RequestId, text},
    routes::Route,
};
use sparkgate_traces::{self, KeyValue, Span, attribute};

/// Puts a span around all requests, if traces are on.
pub fn traced(router: Router) -> Router {
    match sparkgate_traces::are_on() {
        true => router.layer(from_fn(trace)),
        false => router,
    }
}

async fn trace(Extension(id): Extension<RequestId>, request: Request, next: Next) -> Response {
    let (path, route) = (request.uri().path(), Route::of(&request));
    if route.is_probe {
        return next.run(request).await;
    }
    let (method, template) = (known(request.method()).to_owned(), route.template());
    let name = template.map_or_else(|| method.clone(), |template| format!("{method} {template}"));
    let (traceparent, tracestate) = (header(request.headers(), "traceparent"), header(request.headers(), "tracestate"));
    let span = Span::for_request(name, traceparent.as_deref(), tracestate.as_deref().unwrap_or_default(), || {
        let given = [
            KeyValue::new(attribute::HTTP_REQUEST_METHOD, method),
            KeyValue::new(attribute::URL_PATH, route.loggable(path).into_owned()),
            KeyValue::new(attribute::REQUEST_ID, text(&id).to_owned()),
        ];
        given.into_iter().chain(template.map(|template| KeyValue::new(attribute::HTTP_ROUTE, template.to_owned())))
    });
    let response = span.enter(next.run(request)).await;
    mark(&span, response.status());
    response
}

/// Adds the status. Only one of the server is an error of the server.
fn mark(span: &Span, status: StatusCode) {
    span.set(attribute::HTTP_RESPONSE_STATUS_CODE, i64::from(status.as_u16()));
    if status.is_server_error() {
        span.fail(status.as_str().to_owned());
    }
}

/// Returns the values of a header as one list.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Vec<_> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Returns the name of a method; `_OTHER` stands for names that callers invented.
fn known(method: &Method) -> &str {
    let all = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
        Method::PATCH,
        Method::TRACE,
        Method::CONNECT,
    ];
    if all.contains(method) { method.as_str() } else { "_OTHER" }
}
