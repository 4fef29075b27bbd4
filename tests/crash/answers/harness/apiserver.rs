//! A fake API server: it confirms every create, lists no pods, and stores nothing.

use std::net::SocketAddr;

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Method, StatusCode, header},
    response::Response,
};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sparkgate_testing::kubeconfig;
use tokio::{net::TcpListener, task::AbortHandle};

/// The server. It ends when this is dropped.
pub(crate) struct Apiserver {
    pub(crate) address: SocketAddr,
    task: AbortHandle,
}

impl Apiserver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async move { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() };
        Self { address, task: tokio::spawn(serve).abort_handle() }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        kubeconfig::without_tls(self.address)
    }
}

impl Drop for Apiserver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_end_matches('/').to_owned();
    let query = head.uri.query().unwrap_or_default();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    match head.method {
        Method::GET if query.contains("watch=true") || query.contains("watch=1") => {
            // No events happen in this cluster.
            json_stream(Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>()))
        }
        Method::GET if path == "/version" => whole(200, &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"})),
        Method::GET if path.ends_with("/pods") => whole(
            200,
            &json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}),
        ),
        Method::GET if path.contains("/namespaces/") && path.matches('/').count() == 4 => {
            let name = path.rsplit('/').next().unwrap_or_default();
            let metadata = json!({"name": name, "uid": "00000000-0000-0000-0000-000000000001"});
            whole(200, &json!({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata}))
        }
        Method::POST => {
            let mut object: Value = serde_json::from_slice(&body).unwrap_or_default();
            object["metadata"]["uid"] = uuid::Uuid::new_v4().to_string().into();
            object["metadata"]["resourceVersion"] = "7".into();
            if path.ends_with("reviews") {
                object["status"] = json!({"allowed": true});
            }
            whole(201, &object)
        }
        _ => {
            // The path of an object ends with its kind and its name.
            let mut names = path.rsplit('/').skip(usize::from(path.ends_with("/log")));
            let details = json!({"name": names.next(), "kind": names.next()});
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "reason": "NotFound", "message": "not found", "code": 404, "details": details});
            whole(404, &status)
        }
    }
}

fn whole(status: u16, body: &Value) -> Response {
    let mut response = json_stream(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn json_stream(body: Body) -> Response {
    Response::builder().header(header::CONTENT_TYPE, "application/json").body(body).unwrap()
}
