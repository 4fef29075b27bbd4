//! `sparkgate adopt-cluster`: moves a database to another cluster on purpose.

use super::settings::AdoptCluster;
use crate::{cluster::Cluster, service, store::Store};

/// Makes the cluster of the kubeconfig the database's own.
///
/// # Errors
/// The database or the cluster can't be used, or submissions may have drivers in the other cluster.
pub(super) async fn adopt_cluster(settings: AdoptCluster) -> anyhow::Result<()> {
    let store = Store::connect(&settings.database.settings()?).await?;
    let cluster = Cluster::connect(&settings.place.settings()).await?;
    service::adopt_cluster(&store, &cluster, settings.with_live_submissions).await?;
    store.close().await;
    tracing::info!("the database belongs to this cluster now");
    Ok(())
}
