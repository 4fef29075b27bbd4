//! Every status that the description of the API documents can be produced: the test requests each one, and checks that
//! its body has the documented type. It fails for a status that it can't produce. What only a gateway with an access file
//! answers (401, 403, and 429 for a caller) is in `tests/gateway/access`.

use axum::{body::Body, http::Request};
use serde_json::Value;
use sqlx::PgPool;

use crate::in_memory::{Answer, send};

mod place;
mod produce;
mod queues;
mod sessions;

use place::Place;
use produce::produce;

/// One status of one operation.
struct Promise<'a> {
    operation: &'a str,
    method: String,
    path: &'a str,
    status: u16,
    /// The types of its body; empty if it has no body.
    types: Vec<&'a str>,
}

impl Promise<'_> {
    /// Returns the path of a request about this submission.
    fn path_of(&self, id: &str) -> String {
        self.path.replace("{id}", id)
    }

    fn is_kept(&self, answer: &Answer) -> bool {
        let given = answer.header("content-type").map(|given| given.split(';').next().unwrap_or_default());
        let is_typed = match given {
            Some(given) => self.types.contains(&given),
            None => self.types.is_empty(),
        };
        answer.status == self.status && is_typed
    }
}

fn promises(document: &Value) -> Vec<Promise<'_>> {
    let mut all = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let types = response["content"].as_object();
                all.push(Promise {
                    operation: operation["operationId"].as_str().unwrap(),
                    method: method.to_uppercase(),
                    path,
                    status: status.parse().unwrap(),
                    types: types.into_iter().flatten().map(|(name, _)| name.as_str()).collect(),
                });
            }
        }
    }
    all
}

#[sqlx::test]
async fn every_documented_status_can_be_produced(pool: PgPool) {
    let document = serde_json::to_value(sparkgate::api::openapi()).unwrap();
    let place = Place::new(pool).await;
    let mut broken = Vec::new();
    let mut all = promises(&document);
    all.retain(|promise| match promise.status {
        401 | 403 => false,
        429 => ["followEvents", "waitForSubmission", "readLog"].contains(&promise.operation),
        _ => true,
    });
    for promise in &all {
        let name = format!("{} {}", promise.operation, promise.status);
        match produce(&place, promise).await {
            None => broken.push(format!("{name}: there is no request that produces it")),
            Some(answer) if !promise.is_kept(&answer) => broken.push(format!("{name}: {answer:?}")),
            Some(_) => {}
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(all.len() > 80, "only {} were found", all.len());
}

/// Returns a request without a body, or with a JSON body.
fn request(method: &str, path: &str, body: Option<&Value>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap()
}

async fn ask(router: &axum::Router, method: &str, path: &str, body: Option<&Value>) -> Answer {
    send(router, request(method, path, body)).await
}
