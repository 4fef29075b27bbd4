//! How a program is told where an API server is.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;

/// The name of the file in its directory.
pub(crate) const FILE: &str = "kubeconfig";

/// Writes one, as JSON, which every client reads; answers its path. What isn't behind TLS has no authority.
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
