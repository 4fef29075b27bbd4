//! Kubeconfigs of servers without authentication.

use std::net::SocketAddr;

use serde_json::json;

/// Returns a kubeconfig of a server without TLS.
pub fn without_tls(server: SocketAddr) -> String {
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": format!("http://{server}")}}],
        "users": [{"name": "test", "user": {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]})
    .to_string()
}
