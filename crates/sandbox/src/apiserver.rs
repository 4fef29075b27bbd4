//! The part of the Kubernetes API that Sparkgate and a Spark driver use, in memory, over plain HTTP.
//!
//! Its answers are those of kube-apiserver: the same test script runs against both. It must listen only on loopback, where it
//! admits every user of the machine unless it is given a token. Not supported: server-side field ownership, admission webhooks, quotas, protobuf, tables.

mod admit;
mod call;
mod collect;
mod discovery;
mod failure;
mod guard;
mod object;
mod options;
mod patch;
mod removal;
mod resource;
mod review;
mod route;
mod selector;
mod store;
mod target;
mod verb;

use std::sync::Arc;

use axum::{Router, middleware};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use failure::Answer;
use store::Store;

/// A Kubernetes API server that at first has only the namespaces `default` and `kube-system`. Clones are the same server.
#[derive(Debug, Clone)]
pub struct Apiserver {
    store: Arc<Store>,
    /// Ends the streams of watches and logs, which would otherwise delay a shutdown.
    shutdown: CancellationToken,
}

impl Default for Apiserver {
    fn default() -> Self {
        Self::new(CancellationToken::new())
    }
}

impl Apiserver {
    /// Creates an empty server, whose streams end when `shutdown` is cancelled.
    #[must_use]
    pub fn new(shutdown: CancellationToken) -> Self {
        let store = Store::new();
        for name in ["default", "kube-system"] {
            let made: Answer<_> = store.write(|state| {
                let namespace = json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": { "name": name } });
                verb::create::insert(state, &resource::NAMESPACES, None, namespace)
            });
            if let Err(failure) = made {
                tracing::error!(?failure, "the sandbox could not create the namespace {name}");
            }
        }
        Self { store: Arc::new(store), shutdown }
    }

    /// Returns the routes, for use in another HTTP server.
    pub fn router(&self) -> Router {
        Router::new().fallback(route::serve).layer(middleware::from_fn(guard::refuse_browsers)).with_state(self.clone())
    }

    /// Drops the history, as etcd does when it is compacted: watches and list pages of an earlier version are answered with
    /// 410, so that their clients list again.
    pub fn compact(&self) {
        self.store.write(store::State::compact);
    }
}

/// Serves an empty API on `listener` until `shutdown` is cancelled. With a token, it admits only requests that have it.
///
/// # Errors
/// Returns the errors of the listener.
pub async fn serve(listener: TcpListener, token: Option<&str>, shutdown: CancellationToken) -> std::io::Result<()> {
    let mut router = Apiserver::new(shutdown.clone()).router();
    if let Some(token) = token {
        router = with_token(router, token);
    }
    axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

/// Returns routes that only clients with the token reach.
fn with_token(router: Router, token: &str) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::from(token), guard::require_token))
}

#[cfg(test)]
mod tests;
