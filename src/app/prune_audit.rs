//! `sparkgate prune-audit`: deletes old entries of the audit, for an operator who may do so in the database.

use anyhow::Context;

use super::settings::PruneAudit;
use sparkgate_store::{Actor, AuditNote, Store};

/// The number of entries that one statement reads.
const ROUND: u32 = 5000;

/// Deletes the entries, and writes one about it.
///
/// # Errors
/// A setting or the database can't be used, or the role may not delete entries.
pub(super) async fn prune_audit(settings: PruneAudit) -> anyhow::Result<()> {
    let PruneAudit { database, older_than } = settings;
    let store = Store::connect(&database.settings()?).await?;
    let mut deleted = 0;
    loop {
        let round = store.prune_audit(older_than, ROUND).await;
        let round = round
            .context("the role of the gateway may not delete entries: use the owner of the tables, as for migrate")?;
        deleted += round;
        if round < u64::from(ROUND) {
            break;
        }
    }
    if deleted > 0 {
        let (request_id, note) = (String::new(), AuditNote::default());
        let actor = Actor { principal: "database".to_owned(), address: None, request_id, note };
        let detail = format!("{deleted} entries older than {} days", older_than.as_secs() / 86_400);
        store.write_audit(&actor, "prune-audit", (None, None), true, &detail).await?;
    }
    tracing::info!(deleted, "old entries of the audit deleted");
    store.close().await;
    Ok(())
}
