//! The kubeconfig that gives a program the address of an API server.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;

/// The name of the file in its directory.
pub(crate) const FILE: &str = "kubeconfig";

/// Writes a kubeconfig as JSON, which every client reads; returns its path. A server without TLS has no `authority`.
pub(crate) fn write(directory: &Path, server: &str, authority: Option<&Path>, token: &str) -> anyhow::Result<PathBuf> {
    let file = directory.join(FILE);
    let mut cluster = json!({"server": server});
    if let Some(authority) = authority {
        cluster["certificate-authority"] = json!(authority);
    }
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench", "namespace": "default"}}],
    });
    std::fs::write(&file, config.to_string()).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}
