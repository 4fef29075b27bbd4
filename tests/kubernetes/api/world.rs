//! One server, a namespace in it, and functions for requests.

use std::time::Duration;

use futures::{StreamExt, stream::BoxStream};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::server::Server;

/// How long a server may take for its own background work.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    client: kube::Client,
    pub(crate) namespace: String,
    server: Server,
}

/// Status code and body.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl World {
    pub(crate) async fn sandbox(name: &str) -> Self {
        Self::new(name, Server::sandbox().await).await
    }

    pub(crate) async fn kube_apiserver(name: &str) -> Self {
        Self::new(name, Server::real().await).await
    }

    async fn new(name: &str, server: Server) -> Self {
        let namespace = name.replace('_', "-");
        let world = Self { client: server.admin().await, namespace: namespace.clone(), server };
        let made = world.post("/api/v1/namespaces", json!({ "metadata": { "name": namespace } })).await;
        assert_eq!(made.code, 201, "{}", made.body);
        world
    }

    /// Returns `/api/v1/namespaces/{own}/{rest}`.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    pub(crate) async fn send(&self, method: Method, path: &str, media_type: &str, body: impl Into<Vec<u8>>) -> Reply {
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let response = self.client.send(request.body(Body::from(body.into())).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Reply { code, body: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "application/json", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.send(Method::PUT, path, "application/json", body.to_string()).await
    }

    /// Sends a PATCH. `kind` is the first word of the media type: `merge-patch+json`, …
    pub(crate) async fn patch(&self, path: &str, kind: &str, body: Value) -> Reply {
        self.send(Method::PATCH, path, &format!("application/{kind}"), body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> Reply {
        self.send(Method::DELETE, path, "application/json", options.to_string()).await
    }

    /// Creates a `ConfigMap` with one label; returns it.
    pub(crate) async fn config_map(&self, name: &str, label: &str) -> Value {
        let body = json!({ "metadata": { "name": name, "labels": { "group": label } }, "data": { "key": "1" } });
        self.post(&self.path("configmaps"), body).await.expect(201)
    }

    /// Creates a pod; returns it.
    pub(crate) async fn pod(&self, name: &str) -> Value {
        self.post(&self.path("pods"), pod(name)).await.expect(201)
    }

    /// Binds a pod to a node, as a scheduler does, and waits until the watch cache shows it: DELETE reads the cached pod first, and gives a pod
    /// without a node no grace period (`podStrategy.CheckGracefulDelete`).
    pub(crate) async fn bind(&self, pod: &str, node: &str) -> Reply {
        let body = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": pod },
            "target": { "kind": "Node", "name": node } });
        let path = self.path(&format!("pods/{pod}"));
        let reply = self.post(&format!("{path}/binding"), body).await;
        if reply.code == 201 {
            let bound = self.get(&path).await.expect(200);
            let version = bound["metadata"]["resourceVersion"].as_str().unwrap();
            self.get(&format!("{path}?resourceVersion={version}")).await.expect(200);
        }
        reply
    }

    /// Returns the version of the whole store.
    pub(crate) async fn version(&self) -> String {
        self.get(&self.path("configmaps")).await.expect(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    }

    /// Starts a watch.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.client.send(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        let mut pending = Vec::new();
        let lines = response.into_body().into_data_stream().flat_map(move |chunk| {
            pending.extend_from_slice(&chunk.unwrap());
            let end = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let whole: Vec<u8> = pending.drain(..end).collect();
            let events: Vec<Value> =
                serde_json::Deserializer::from_slice(&whole).into_iter().map(Result::unwrap).collect();
            futures::stream::iter(events)
        });
        Watch(lines.boxed())
    }

    /// Repeats a GET until it answers `code`.
    pub(crate) async fn until(&self, path: &str, code: u16) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let reply = self.get(path).await;
            if reply.code == code {
                return;
            }
            assert!(Instant::now() < deadline, "{path} still answers {} and {}", reply.code, reply.body);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Compacts the server's history.
    pub(crate) async fn compact(&self) {
        self.server.compact(&self.version().await).await;
    }
}

impl Reply {
    /// Returns the body, and checks the code.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }

    /// Checks an error: a `Status` with that reason, whose message contains the words.
    #[track_caller]
    pub(crate) fn refused(self, code: u16, reason: &str, words: &str) {
        assert_eq!((self.code, self.body["kind"].as_str()), (code, Some("Status")), "{}", self.body);
        assert_eq!((self.body["reason"].as_str(), self.body["code"].as_u64()), (Some(reason), Some(code.into())));
        let message = self.body["message"].as_str().unwrap();
        assert!(message.contains(words), "{message:?} does not contain {words:?}");
    }
}

pub(crate) struct Watch(BoxStream<'static, Value>);

impl Watch {
    pub(crate) async fn next(&mut self) -> Option<Value> {
        timeout(PATIENCE, self.0.next()).await.expect("the watch reports nothing")
    }

    /// Returns the next event's type and the name of its object.
    pub(crate) async fn event(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch has ended");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }

    pub(crate) async fn expect(&mut self, kind: &str, name: &str) {
        assert_eq!(self.event().await, (kind.into(), name.into()));
    }
}

/// Returns a minimal pod.
pub(crate) fn pod(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "containers": [{ "name": "main", "image": "image:1" }] } })
}

pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}
