//! `sparkgate release-finalizers`: removes finalizers before an uninstall.

use anyhow::bail;

use super::settings::Place;
use sparkgate_cluster::{Cluster, Released};

/// Removes our finalizer from all driver pods, those of every installation in these namespaces, so that namespaces and
/// pods can be deleted when no gateway runs any more.
///
/// # Errors
/// The cluster can't be used, or some pods keep their finalizer. Both can be retried.
pub(super) async fn release_finalizers(place: Place) -> anyhow::Result<()> {
    let cluster = Cluster::connect(&place.settings()).await?;
    let Released { released, failed } = cluster.release_finalizers().await?;
    tracing::info!("the finalizer was removed from {released} driver pods");
    if !failed.is_empty() {
        let failed = failed.len();
        bail!("{failed} driver pods still have the finalizer: fix the cause above and run this again");
    }
    Ok(())
}
