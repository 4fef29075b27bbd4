//! Requests and answers: lists in pages, and watches without changes.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Frame, Incoming},
};
use serde_json::json;
use tokio::time::timeout;

use super::State;

type Body = BoxBody<Bytes, Infallible>;

pub(super) async fn answer(state: Arc<State>, request: Request<Incoming>) -> http::Result<Response<Body>> {
    let query = request.uri().query().unwrap_or_default();
    let query: HashMap<_, _> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let number = |name: &str| query.get(name).and_then(|value| value.parse::<usize>().ok());
    if request.method() != Method::GET || request.uri().path() != "/api/v1/pods" {
        return whole(404, status(404, "NotFound"));
    }
    let version = *state.version.borrow();
    if query.get("watch").is_none_or(|watch| *watch == "false") {
        let selector = query.get("labelSelector").copied().unwrap_or_default();
        // `sparkgate.dev/instance=` and a uuid.
        let instance = selector.len().checked_sub(36).and_then(|begin| selector.get(begin..)).unwrap_or_default();
        // A replica's check that lists work selects an attempt that no pod has.
        let from = if selector.contains("attempt") { state.pods.count } else { number("continue").unwrap_or(0) };
        let limit = number("limit").unwrap_or(usize::MAX);
        return whole(200, state.pods.page(from, limit, version, instance));
    }
    let known = number("resourceVersion").is_some_and(|known| known as u64 >= version);
    let lasting = Duration::from_secs(number("timeoutSeconds").unwrap_or(300) as u64);
    let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": version.to_string()}});
    let bookmark = line("BOOKMARK", &object.to_string());
    // A watch on a busy cluster always has something to send; here it is a bookmark.
    let first = stream::iter(known.then(|| bookmark.clone()));
    let last = stream::once(async move {
        let quiet = known && timeout(lasting, state.forgotten(version)).await.is_err();
        if quiet { bookmark } else { line("ERROR", &status(410, "Expired")) }
    });
    let lines = first.chain(last);
    let body = StreamBody::new(lines.map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(line)))));
    Response::builder().header("content-type", "application/json").body(BodyExt::boxed(body))
}

impl State {
    async fn forgotten(&self, version: u64) {
        let _ = self.version.subscribe().wait_for(|newest| *newest > version).await;
    }
}

fn line(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn status(code: u16, reason: &str) -> String {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "code": code,
        "message": reason})
    .to_string()
}

fn whole(status: u16, body: String) -> http::Result<Response<Body>> {
    let answer = Response::builder().status(status).header("content-type", "application/json");
    answer.body(Full::new(Bytes::from(body)).boxed())
}
