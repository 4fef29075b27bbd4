//! `sparkgate rotate-installation-key`: another key for the installation, when a copy of the database is in wrong hands.

use anyhow::{anyhow, bail};
use ring::rand::{SecureRandom, SystemRandom};

use super::settings::RotateInstallationKey;
use sparkgate_store::{Actor, AuditNote, Store};

/// Replaces the key, and writes an entry of the audit. Replicas that run use the new key within seconds.
///
/// # Errors
/// The database can't be used, or a replica of a release that would not notice is alive.
pub(super) async fn rotate_installation_key(settings: RotateInstallationKey) -> anyhow::Result<()> {
    let store = Store::connect(&settings.database.settings()?).await?;
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| anyhow!("the operating system has no random bytes"))?;
    if !store.rotate_installation_key(&key).await? {
        bail!(
            "a replica of an older release runs, which would not accept what the new key signs: replace it by this release first"
        );
    }
    let actor = Actor {
        principal: "database".to_owned(),
        address: None,
        request_id: String::new(),
        note: AuditNote::default(),
    };
    store.write_audit(&actor, "rotate-installation-key", (None, None), true, "").await?;
    tracing::info!("the installation has another key: replicas use it within seconds");
    store.close().await;
    Ok(())
}
