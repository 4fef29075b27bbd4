//! `sparkgate bootstrap-key`: the first API key, for an operator who can reach the database.

use std::io::{self, Write};

use secrecy::ExposeSecret;

use super::settings::BootstrapKey;
use sparkgate_service::{ApiKeys, KeyRequest};
use sparkgate_store::Store;

/// Creates the key, prints its text to standard output, and what it is to the log.
///
/// # Errors
/// A setting or the database can't be used.
pub(super) async fn bootstrap_key(settings: BootstrapKey) -> anyhow::Result<()> {
    let BootstrapKey { database, name, role, tenant, expires } = settings;
    let store = Store::connect(&database.settings()?).await?;
    let request = KeyRequest { name, tenant, role, expires_in: Some(expires) };
    let created = ApiKeys::new(store.clone()).create_by_operator(&request).await?;
    writeln!(io::stdout(), "{}", created.text.expose_secret())?;
    store.close().await;
    Ok(())
}
