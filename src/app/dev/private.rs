//! The private files of `dev`, and the tokens that it requires of its clients.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};

use crate::app::settings::Database;
use sparkgate_access::{ApiKey, Role};
use sparkgate_service::{ApiKeys, KeyRequest};
use sparkgate_store::Store;

/// Every client needs an API key. The tenant is that of a `dev` without a token.
const ACCESS: &str = "authentication: {apiKeys: {enabled: true}}\ntenants: {default: {namespaces: ['*']}}\n";

/// The token of the sandbox's Kubernetes API.
#[derive(Debug)]
pub(super) struct PrivateToken {
    pub(super) text: SecretString,
    pub(super) path: PathBuf,
}

impl PrivateToken {
    /// Returns the token of the directory: a sandbox of an earlier `dev` may still run and require it.
    pub(super) fn for_sandbox(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join("sandbox-token");
        let text = match fs::read_to_string(&path) {
            Ok(text) if !text.is_empty() => text.into(),
            _ => {
                // Anything random: an API key has 256 bits.
                let key = ApiKey::generate().context("generating the sandbox's token")?;
                write(&path, key.text().expose_secret())?;
                key.text().clone()
            }
        };
        Ok(Self { text, path })
    }
}

/// Writes an access file with one tenant, in which every client needs a key.
pub(super) fn access_file(dir: &Path) -> anyhow::Result<PathBuf> {
    let access = dir.join("access.yaml");
    write(&access, ACCESS)?;
    Ok(access)
}

/// Writes an administrator's API key into the file `token`: `http://ADDRESS KEY`. The key of an earlier `dev` stays in use.
pub(super) async fn write_key(dir: &Path, database: &Database, listen: SocketAddr) -> anyhow::Result<()> {
    let path = dir.join("token");
    let store = Store::connect(&database.settings()?).await?;
    let key = match kept(&store, &path).await? {
        Some(key) => key,
        None => {
            let request =
                KeyRequest { name: "sparkgate-dev".to_owned(), tenant: None, role: Role::Admin, expires_in: None };
            ApiKeys::new(store.clone()).create_by_operator(&request).await?.text
        }
    };
    store.close().await;
    write(&path, &format!("http://{listen} {}\n", key.expose_secret()))?;
    tracing::info!("clients need the token in {}", path.display());
    Ok(())
}

/// Returns the key in the file, if the database still knows it.
async fn kept(store: &Store, path: &Path) -> anyhow::Result<Option<SecretString>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(None) };
    let Some(Ok(key)) = text.split_whitespace().nth(1).map(ApiKey::parse) else { return Ok(None) };
    Ok(store.valid_api_key(key.id(), key.digest().as_bytes()).await?.map(|_| key.text().clone()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    write_private(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Writes a file that only its owner can read.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // Of an earlier release, it may have other rights.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}
