//! `sparkgate adopt-cluster`: assigns a database to another cluster.

use super::settings::AdoptCluster;
use sparkgate_cluster::Cluster;
use sparkgate_service as service;
use sparkgate_store::Store;

/// Assigns the database to the cluster of the kubeconfig.
///
/// # Errors
/// The database or the cluster can't be used, or submissions may have drivers in the other cluster.
pub(super) async fn adopt_cluster(settings: AdoptCluster) -> anyhow::Result<()> {
    let store = Store::connect(&settings.database.settings()?).await?;
    let cluster = Cluster::connect(&settings.place.settings()).await?;
    let AdoptCluster { with_live_submissions, same_store, .. } = settings;
    service::adopt_cluster(&store, &cluster, with_live_submissions, same_store).await?;
    store.close().await;
    tracing::info!("the database belongs to this cluster now");
    if !same_store {
        tracing::warn!(
            "the database counts as a copy: it changes nothing in the stores of files and logs that it had. If there is no other database \
             that uses them, run this again with --same-store"
        );
    }
    Ok(())
}
