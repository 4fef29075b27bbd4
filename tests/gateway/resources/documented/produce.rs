//! Produces each status.

use std::time::Duration;

use axum::{Router, body::Body, http::Request};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{
    Place, Promise, ask,
    place::{application, spark},
    queues::{OPERATIONS, about_queue},
    request,
    sessions::{OPERATIONS as OF_SESSIONS, about_session},
};
use sparkgate::{
    api::{HttpSettings, router as axum_router},
    spark::SparkVersion,
    store::Store,
};

use crate::in_memory::{Answer, BODY_LIMIT, send, service};
use crate::resources::{
    files::{a_drop, keeping, of_fast_clients, sha256},
    world::job,
};

const CREATE: &str = "createSubmissionResource";
const SPARKS_CREATE: &str = "createSubmission";
const APPLICATION: &str = "submitApplication";
const RERUN: &str = "rerunSubmission";

/// Sends a request that produces the status. `None`: there is no known one.
pub(super) async fn produce(place: &Place, promise: &Promise<'_>) -> Option<Answer> {
    let router = &place.router;
    if promise.path.starts_with("/v1/files") {
        return of_file(place, promise).await;
    }
    if OPERATIONS.contains(&promise.operation) {
        return about_queue(place, promise).await;
    }
    if OF_SESSIONS.contains(&promise.operation) {
        return about_session(place, promise).await;
    }
    if promise.operation == APPLICATION && !matches!(promise.status, 500 | 503) {
        return of_application(place, promise).await;
    }
    Some(match (promise.operation, promise.status) {
        (_, 503) => good(place, &place.cut_off, promise).await,
        (_, 500) => place.broken(good(place, router, promise)).await,
        ("getOutcome", 404) => ask(router, "GET", &promise.path_of(&place.submitted().await), None).await,
        ("getOutcome", 424) => ask(router, "GET", &promise.path_of(&place.killed().await), None).await,
        ("killSubmissionResource", 202) => {
            ask(router, "DELETE", &promise.path_of(&place.submitted().await), None).await
        }
        ("createToken", 403) => {
            let elsewhere = json!({"name": "new", "role": "viewer", "tenant": "nowhere"});
            ask(router, "POST", promise.path, Some(&elsewhere)).await
        }
        ("createToken" | "createWebhook", 201) => good(place, router, promise).await,
        ("createWebhook", 403) => {
            let elsewhere = json!({"url": "https://hooks.example.org/x", "tenant": "nowhere"});
            ask(router, "POST", promise.path, Some(&elsewhere)).await
        }
        ("getWebhook" | "listWebhookDeliveries" | "rotateWebhookSecret", 200)
        | ("deleteWebhook", 204)
        | ("replayWebhook" | "replayWebhookDelivery", 202) => {
            let (webhook, delivery) = place.webhook().await;
            let path = promise.path_of(&webhook).replace("{delivery}", &delivery);
            ask(router, &promise.method, &path, None).await
        }
        ("revokeToken", 204) => {
            let created = ask(router, "POST", "/v1/tokens", Some(&new_key())).await.json();
            ask(router, "DELETE", &promise.path_of(created["id"].as_str().unwrap()), None).await
        }
        ("followEvents", 410) => expired(place).await,
        ("openSparkUi", 303) => ask(router, "GET", &promise.path_of(&place.submitted().await), None).await,
        ("readLog", 429) => crowded(place, promise).await,
        (_, 429) => good(place, &place.full, promise).await,
        (CREATE, 200) => {
            create(place, promise, "replayed", job(json!({}))).await;
            create(place, promise, "replayed", job(json!({}))).await
        }
        (RERUN, 201) => good(place, router, promise).await,
        (RERUN, 200) => {
            let of = id(place).await;
            again(place, promise, &of, json!({})).await;
            again(place, promise, &of, json!({})).await
        }
        (RERUN, 409) => {
            let of = id(place).await;
            let sole = || json!({"name": "rerun", "uniqueName": true});
            ask(router, "POST", &promise.path_of(&of), Some(&sole())).await;
            ask(router, "POST", &promise.path_of(&of), Some(&sole())).await
        }
        (RERUN, 413) => {
            ask(router, "POST", &promise.path_of(&id(place).await), Some(&json!({"name": "x".repeat(BODY_LIMIT)})))
                .await
        }
        (RERUN, 415) => {
            let path = promise.path_of(&id(place).await);
            send(router, Request::post(path).body(Body::from("{}")).unwrap()).await
        }
        (RERUN, 422) => {
            let of = id(place).await;
            again(place, promise, &of, json!({})).await;
            again(place, promise, &of, json!({"mainClass": "Other"})).await
        }
        (CREATE, 201) => create(place, promise, "new", job(json!({}))).await,
        (CREATE | SPARKS_CREATE, 400) => create(place, promise, "bad", json!({})).await,
        (CREATE | SPARKS_CREATE, 409) => {
            create(place, promise, "a", unique(promise)).await;
            create(place, promise, "b", unique(promise)).await
        }
        (CREATE | SPARKS_CREATE, 413) => create(place, promise, "large", json!({"name": "x".repeat(BODY_LIMIT)})).await,
        (CREATE, 408) => slow_form(place, promise.path).await,
        (CREATE, 415) => send(router, Request::post(promise.path).body(Body::from("{}")).unwrap()).await,
        (CREATE | SPARKS_CREATE, 422) => {
            let mut other = body(promise);
            create(place, promise, "reused", other.clone()).await;
            other["mainClass"] = json!("Other");
            create(place, promise, "reused", other).await
        }
        // Spark's paths without an id.
        ("submissionStatus" | "killSubmission", 400) => {
            ask(router, &promise.method, promise.path.trim_end_matches("/{id}"), None).await
        }
        (_, 400) => {
            ask(router, &promise.method, &format!("{}?colour=green", promise.path_of(&id(place).await)), None).await
        }
        ("getJob", 404) => ask(router, "GET", "/v1/jobs/none", None).await,
        ("getJob", 200) => ask(router, "GET", "/v1/jobs/job?tenant=default", None).await,
        (_, 404) => ask(router, &promise.method, &promise.path_of("driver-1-1"), None).await,
        (_, 304) => unchanged(place, promise).await,
        (_, 200) => good(place, router, promise).await,
        _ => return None,
    })
}

/// Sends a request of Kubeflow's operator.
async fn of_application(place: &Place, promise: &Promise<'_>) -> Option<Answer> {
    let submit = async |body: Value| ask(&place.router, "POST", promise.path, Some(&body)).await;
    Some(match promise.status {
        200 => {
            place.launching("again", "PENDING", submit(application("again"))).await;
            submit(application("again")).await
        }
        201 => place.launching("new", "PENDING", submit(application("new"))).await,
        400 => submit(json!({})).await,
        409 => place.launching("taken", "ERROR", submit(application("taken"))).await,
        413 => submit(json!({"submission_id": "x".repeat(BODY_LIMIT)})).await,
        415 => send(&place.router, Request::post(promise.path).body(Body::from("{}")).unwrap()).await,
        422 => {
            let mut application = application("template");
            application["driver_pod_template"] = json!("a file");
            submit(application).await
        }
        _ => return None,
    })
}

/// Sends a request about a file.
async fn of_file(place: &Place, promise: &Promise<'_>) -> Option<Answer> {
    let router = &place.router;
    match promise.operation {
        "listFiles" => return of_list(place, promise).await,
        "deleteFile" => return of_deletion(place, promise).await,
        "continueUpload" => return of_part(place, promise).await,
        _ => {}
    }
    if promise.operation == "uploadFile" {
        let fresh = uuid::Uuid::new_v4().to_string();
        let hash = sha256(fresh.as_bytes());
        return Some(match promise.status {
            200 => {
                let hash = place.uploaded().await;
                place.upload(&hash, "content").await
            }
            201 => place.upload(&hash, fresh).await,
            400 => place.upload("x", "content").await,
            404 => ask(&without_files(place).await, "PUT", &format!("/v1/files/{hash}"), None).await,
            408 => {
                let (router, _dir) = impatient(place).await;
                send(&router, Request::put(format!("/v1/files/{hash}")).body(a_drop()).unwrap()).await
            }
            413 => place.upload(&hash, vec![0; 8 << 20]).await,
            422 => place.upload(&hash, "other").await,
            503 => ask(&place.cut_off, "PUT", &format!("/v1/files/{hash}"), None).await,
            _ => return None,
        });
    }
    let (path, id) = match promise.operation {
        "fetchFile" => place.signed().await,
        _ => (format!("/v1/files/{}", place.uploaded().await), String::new()),
    };
    let with = async |name: &'static str, value: &str| {
        let mut request = request("GET", &path, None);
        request.headers_mut().insert(name, value.parse().unwrap());
        send(router, request).await
    };
    Some(match promise.status {
        200 => ask(router, "GET", &path, None).await,
        206 => with("range", "bytes=0-1").await,
        304 => with("if-none-match", "*").await,
        400 => ask(router, "GET", &format!("{path}?colour=green"), None).await,
        // The hash of another file.
        404 => ask(router, "GET", &path.replace(&sha256(b"content"), &sha256(b"other")), None).await,
        410 => {
            let end = "UPDATE submissions SET state = 'FAILED', finished_at = now() WHERE id = $1";
            sqlx::query(end).bind(&id).execute(&place.pool).await.unwrap();
            ask(router, "GET", &path, None).await
        }
        416 => with("range", "bytes=100-").await,
        503 => ask(&place.cut_off, "GET", &path, None).await,
        _ => return None,
    })
}

/// Returns a gateway that keeps no files.
async fn without_files(place: &Place) -> Router {
    axum_router(service(SparkVersion::V4_3, Store::new(place.pool.clone())).await, HttpSettings::default()).unwrap()
}

/// Returns a gateway whose clients are too slow at once.
async fn impatient(place: &Place) -> (Router, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let service = keeping(place.pool.clone(), dir.path(), of_fast_clients()).await;
    (axum_router(service, HttpSettings::default()).unwrap(), dir)
}

/// Sends a form whose file doesn't arrive.
async fn slow_form(place: &Place, path: &str) -> Answer {
    let request = job(json!({"appResource": "sparkgate-file:job.py"})).to_string();
    let form = format!(
        "--b\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{request}\r\n\
         --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"job.py\"\r\n\r\nx"
    );
    let first = stream::iter([Ok::<_, std::io::Error>(form)]);
    let body = Body::from_stream(first.chain(stream::pending()));
    let (router, _dir) = impatient(place).await;
    let request = Request::post(path).header("content-type", "multipart/form-data; boundary=b");
    send(&router, request.body(body).unwrap()).await
}

async fn of_list(place: &Place, promise: &Promise<'_>) -> Option<Answer> {
    Some(match promise.status {
        200 => ask(&place.router, "GET", promise.path, None).await,
        400 => ask(&place.router, "GET", "/v1/files?limit=0", None).await,
        404 => ask(&without_files(place).await, "GET", promise.path, None).await,
        503 => ask(&place.cut_off, "GET", promise.path, None).await,
        _ => return None,
    })
}

async fn of_deletion(place: &Place, promise: &Promise<'_>) -> Option<Answer> {
    let fresh = uuid::Uuid::new_v4().to_string();
    let path = format!("/v1/files/{}", sha256(fresh.as_bytes()));
    Some(match promise.status {
        204 => {
            place.upload(&sha256(fresh.as_bytes()), fresh).await;
            ask(&place.router, "DELETE", &path, None).await
        }
        400 => ask(&place.router, "DELETE", "/v1/files/x", None).await,
        404 => ask(&place.router, "DELETE", &path, None).await,
        409 => {
            place.signed().await;
            ask(&place.router, "DELETE", &format!("/v1/files/{}", place.uploaded().await), None).await
        }
        503 => ask(&place.cut_off, "DELETE", &path, None).await,
        _ => return None,
    })
}

async fn of_part(place: &Place, promise: &Promise<'_>) -> Option<Answer> {
    let fresh = uuid::Uuid::new_v4().to_string();
    let hash = sha256(fresh.as_bytes());
    let send_to = async |router: &Router, hash: &str, offset: &str, complete: &str, content: Body| {
        let request = Request::patch(format!("/v1/files/{hash}")).header("content-type", "application/partial-upload");
        let request = request.header("upload-offset", offset).header("upload-complete", complete);
        send(router, request.body(content).unwrap()).await
    };
    let here = async |offset: &str, complete: &str, content: Body| {
        send_to(&place.router, &hash, offset, complete, content).await
    };
    Some(match promise.status {
        200 => send_to(&place.router, &place.uploaded().await, "0", "?1", Body::empty()).await,
        201 => here("0", "?1", fresh.clone().into()).await,
        204 => here("0", "?0", fresh.clone().into()).await,
        400 => here("x", "?0", Body::empty()).await,
        404 => send_to(&without_files(place).await, &hash, "0", "?1", Body::empty()).await,
        408 => {
            let (router, _dir) = impatient(place).await;
            send_to(&router, &hash, "0", "?1", a_drop()).await
        }
        409 => here("7", "?0", Body::empty()).await,
        413 => here("0", "?1", vec![0; 8 << 20].into()).await,
        415 => ask(&place.router, "PATCH", &format!("/v1/files/{hash}"), None).await,
        422 => here("0", "?1", "other".into()).await,
        503 => send_to(&place.cut_off, &hash, "0", "?1", Body::empty()).await,
        _ => return None,
    })
}

async fn id(place: &Place) -> String {
    place.finished().await
}

fn body(promise: &Promise<'_>) -> Value {
    if promise.operation == SPARKS_CREATE { spark(json!({"spark.app.name": "x"})) } else { job(json!({})) }
}

fn new_key() -> Value {
    json!({"name": "new", "role": "viewer"})
}

fn unique(promise: &Promise<'_>) -> Value {
    match promise.operation {
        SPARKS_CREATE => spark(json!({"spark.app.name": "sole", "spark.sparkgate.uniqueName": "true"})),
        _ => job(json!({"name": "single", "uniqueName": true})),
    }
}

/// Sends a request that succeeds if nothing is wrong.
async fn good(place: &Place, router: &Router, promise: &Promise<'_>) -> Answer {
    let body = match promise.operation {
        CREATE | SPARKS_CREATE => Some(body(promise)),
        APPLICATION => Some(application("good")),
        "createToken" => Some(new_key()),
        "createWebhook" => Some(json!({"url": "https://hooks.example.org/x"})),
        _ => None,
    };
    let path = match promise.path.contains("{id}") {
        true if promise.status == 500 => promise.path_of("driver-20260102030405-0000"),
        true => promise.path_of(&id(place).await),
        false => promise.path.to_owned(),
    };
    ask(router, &promise.method, &path, body.as_ref()).await
}

async fn create(place: &Place, promise: &Promise<'_>, key: &str, body: Value) -> Answer {
    let key = format!("{} {key} {}", promise.operation, promise.status);
    let mut request = request("POST", promise.path, Some(&body));
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    send(&place.router, request).await
}

/// Runs a submission again, with a key.
async fn again(place: &Place, promise: &Promise<'_>, of: &str, patch: Value) -> Answer {
    let mut request = request("POST", &promise.path_of(of), Some(&patch));
    request.headers_mut().insert("idempotency-key", format!("rerun {}", promise.status).parse().unwrap());
    send(&place.router, request).await
}

async fn unchanged(place: &Place, promise: &Promise<'_>) -> Answer {
    let mut path = promise.path_of(&id(place).await);
    if promise.operation == "listSubmissions" {
        // Each reading of a page writes another cursor of the next one.
        path += "?limit=500";
    }
    let tag = ask(&place.router, "GET", &path, None).await.header("etag").unwrap().to_owned();
    let mut request = request("GET", &path, None);
    request.headers_mut().insert("if-none-match", tag.parse().unwrap());
    send(&place.router, request).await
}

/// Deletes a submission whose events were sent. Then asks a replica that wasn't running at that time.
async fn expired(place: &Place) -> Answer {
    let id = place.submitted().await;
    place.submitted().await;
    let stop = CancellationToken::new();
    let publisher = tokio::spawn(place.service.events.clone().run(stop.clone()));
    let waited = "/v1/events?after=0&limit=1&waitSeconds=20";
    ask(&place.router, "GET", waited, None).await;
    sqlx::query("DELETE FROM submissions WHERE id = $1").bind(&id).execute(&place.pool).await.unwrap();
    let other = Place::new(place.pool.clone()).await;
    let reader = tokio::spawn(other.service.events.clone().run(stop.clone()));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let mut answer = ask(&other.router, "GET", "/v1/events?after=0", None).await;
    // The replica reads the newest number after a while.
    while answer.status != 410 && tokio::time::Instant::now() < deadline {
        answer = ask(&other.router, "GET", "/v1/events?after=0&waitSeconds=1", None).await;
    }
    stop.cancel();
    let _ = tokio::join!(publisher, reader);
    answer
}

/// Fills all slots with readers of logs of drivers that don't run yet.
async fn crowded(place: &Place, promise: &Promise<'_>) -> Answer {
    let path = format!("{}?follow=true", promise.path_of(&place.submitted().await));
    let mut open = Vec::new();
    for _ in 0..10_000 {
        let response = place.router.clone().oneshot(request("GET", &path, None)).await.unwrap();
        if response.status() != 200 {
            break;
        }
        open.push(response);
    }
    ask(&place.router, "GET", &path, None).await
}
