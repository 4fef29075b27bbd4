//! Counts the calls of the API server, and measures how long it takes to answer.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};

use http::{Method, Request, Response, Uri};
use tower::Service;

use sparkgate_metrics::{Value, metrics};

/// The resources that calls are counted by. Others count as [`OTHER`], so that their number has a bound.
const RESOURCES: [&str; 19] = [
    "configmaps",
    "events",
    "limitranges",
    "namespaces",
    "networkpolicies",
    "persistentvolumeclaims",
    "podgroups",
    "pods",
    "pods/log",
    "resourcequotas",
    "rolebindings",
    "roles",
    "secrets",
    "selfsubjectaccessreviews",
    "selfsubjectrulesreviews",
    "serviceaccounts",
    "services",
    "tokenreviews",
    "validatingadmissionpolicies",
];
const OTHER: &str = "other";
/// The status of a call without an answer.
const NONE: &str = "none";

/// A client whose calls are counted.
#[derive(Clone)]
pub(super) struct Measured<S>(pub(super) S);

/// A call in progress.
struct Call {
    verb: &'static str,
    resource: &'static str,
    begun: Instant,
}

/// The future of an answer. A caller that no longer waits drops it: there is no answer then.
pub(super) struct Answer<F> {
    answer: F,
    call: Option<Call>,
}

impl<S, B, R> Service<Request<B>> for Measured<S>
where
    S: Service<Request<B>, Response = Response<R>, Future: Unpin>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answer<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let call = Call::of(request.method(), request.uri());
        Answer { answer: self.0.call(request), call: Some(call) }
    }
}

impl<F, R, E> Future for Answer<F>
where
    F: Future<Output = Result<Response<R>, E>> + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(context));
        if let (Ok(response), Some(call)) = (&answer, self.call.take_if(|_| answer.is_ok())) {
            metrics().kubernetes_seconds.with([call.verb, call.resource]).observe(call.begun.elapsed().as_secs_f64());
            call.count(response.status().as_u16().into());
        }
        Poll::Ready(answer)
    }
}

impl<F> Drop for Answer<F> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call.count(NONE.into());
        }
    }
}

impl Call {
    fn of(method: &Method, uri: &Uri) -> Self {
        let (resource, is_named) = resource(uri.path());
        let is_watch = || uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
        let verb = match *method {
            Method::GET if is_named => "get",
            Method::GET if is_watch() => "watch",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if is_named => "delete",
            Method::DELETE => "deletecollection",
            _ => OTHER,
        };
        Self { verb, resource, begun: Instant::now() }
    }

    fn count(&self, code: Value) {
        metrics().kubernetes_requests.with([self.verb.into(), self.resource.into(), code]).inc();
    }
}

/// Returns the resource of a path of the API, and whether the path names one object. The server's own path may be longer: that of
/// a proxy in front of it.
fn resource(path: &str) -> (&'static str, bool) {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    // The group and the version, or the version alone.
    let skipped = match parts.by_ref().find(|part| matches!(*part, "api" | "apis")) {
        Some("api") => parts.by_ref().take(1).count() == 1,
        Some(_) => parts.by_ref().take(2).count() == 2,
        None => false,
    };
    if !skipped {
        return (OTHER, false);
    }
    let (first, second, third) = (parts.next(), parts.next(), parts.next());
    let (kind, name, below) = match (first, third) {
        (Some("namespaces"), Some(kind)) => (Some(kind), parts.next(), parts.next()),
        _ => (first, second, third),
    };
    let is = |known: &&&str| match (known.split_once('/'), below) {
        (Some((kind_of, below_of)), Some(below)) => kind == Some(kind_of) && below == below_of,
        (None, None) => kind == Some(**known),
        _ => false,
    };
    (RESOURCES.iter().find(is).copied().unwrap_or(OTHER), name.is_some())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_call_has_its_verb_and_resource() {
        for (method, uri, verb, resource) in [
            (Method::POST, "/api/v1/namespaces/spark/pods?", "create", "pods"),
            (Method::GET, "/api/v1/namespaces/spark/pods?&watch=true&resourceVersion=7", "watch", "pods"),
            (Method::GET, "/api/v1/pods?limit=500", "list", "pods"),
            (Method::GET, "/api/v1/namespaces/spark/pods/a", "get", "pods"),
            (Method::GET, "/api/v1/namespaces/spark/pods/a/log?follow=true", "get", "pods/log"),
            (Method::GET, "/api/v1/namespaces/kube-system", "get", "namespaces"),
            (Method::DELETE, "/k8s/clusters/c-1/api/v1/namespaces/spark/pods/a", "delete", "pods"),
            (Method::PATCH, "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/b", "patch", "networkpolicies"),
            (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", "create", "tokenreviews"),
            (Method::GET, "/apis/example.org/v1/namespaces/a/secret-things/b", "get", "other"),
            (Method::GET, "/api/v1/namespaces/spark/pods/a/portforward", "get", "other"),
            (Method::GET, "/version", "list", "other"),
        ] {
            let call = Call::of(&method, &uri.parse().unwrap());
            assert_eq!((call.verb, call.resource), (verb, resource), "{method} {uri}");
        }
    }

    #[tokio::test]
    async fn answers_count_by_status_and_a_dropped_call_has_none() {
        let answer = |request: Request<bool>| {
            let is_answered = *request.body();
            let answer = async move {
                if !is_answered {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(Response::builder().status(409).body(()).unwrap())
            };
            Box::pin(answer)
        };
        let mut client = Measured(tower::service_fn(answer));
        // No other test uses this combination.
        let request = |is_answered| Request::put("/api/v1/namespaces/a/limitranges/b").body(is_answered).unwrap();
        let counted =
            |code: Value| metrics().kubernetes_requests.with(["update".into(), "limitranges".into(), code]).get();
        client.call(request(true)).await.unwrap();
        assert_eq!((counted(409.into()), counted(NONE.into())), (1, 0));
        drop(client.call(request(false)));
        assert_eq!((counted(409.into()), counted(NONE.into())), (1, 1));
        let exposed = sparkgate_metrics::exposition().unwrap();
        let count = exposed.lines().find(|line| line.contains("_seconds_count") && line.contains("limitranges"));
        assert!(count.is_some_and(|line| line.ends_with(" 1")), "{count:?}");
    }
}
