//! An API server for a test: a new one of the sandbox, or the kube-apiserver that the tests of this binary share.

use std::net::SocketAddr;

use http::Request;
use kube::{Client, client::Body};
use serde_json::json;
use sparkgate::sandbox::apiserver::Apiserver;
use sparkgate_testing::kube_apiserver::KubeApiserver;
use tokio::net::TcpListener;

pub(crate) enum Server {
    Sandbox(Apiserver, SocketAddr),
    Real(&'static KubeApiserver),
}

impl Server {
    /// Starts a server of the sandbox.
    pub(crate) async fn sandbox() -> Self {
        let server = Apiserver::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, server.router()).into_future());
        Self::Sandbox(server, address)
    }

    /// Returns the kube-apiserver.
    pub(crate) async fn real() -> Self {
        Self::Real(KubeApiserver::start().await)
    }

    /// Returns a client with all rights.
    pub(crate) async fn admin(&self) -> Client {
        match self {
            Self::Sandbox(_, address) => client(&format!("http://{address}")),
            Self::Real(server) => server.admin().await,
        }
    }

    /// Compacts the history up to a version, which has to be the latest one.
    pub(crate) async fn compact(&self, version: &str) {
        match self {
            Self::Sandbox(server, _) => server.compact(),
            Self::Real(server) => {
                let body = json!({ "revision": version, "physical": true }).to_string();
                let request = Request::post("/v3/kv/compaction").body(Body::from(body.into_bytes())).unwrap();
                assert_eq!(client(&server.etcd().to_string()).send(request).await.unwrap().status(), 200);
            }
        }
    }
}

/// Returns a client of a server without TLS, which repeats nothing.
pub(crate) fn client(url: &str) -> Client {
    let mut config = kube::Config::new(url.parse().unwrap());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
