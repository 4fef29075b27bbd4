//! `sparkgate release-finalizers`: what an uninstall needs.

use anyhow::bail;

use super::settings::Place;
use crate::{cluster::Cluster, service::chain};

/// Takes our finalizer from all driver pods, so that namespaces and pods can be deleted when no gateway runs any more.
///
/// # Errors
/// The cluster can't be used, or some pods keep their finalizer: both can be tried again.
pub(super) async fn release_finalizers(place: Place) -> anyhow::Result<()> {
    let cluster = Cluster::connect(&place.settings()).await?;
    let (mut released, mut failed) = (0, 0);
    for pod in cluster.held_drivers().await? {
        match cluster.let_go(&pod.namespace, &pod.pod, &pod.pod_uid).await {
            Ok(()) => released += 1,
            Err(error) => {
                failed += 1;
                tracing::error!("{}", chain(&error));
            }
        }
    }
    tracing::info!("the finalizer was taken from {released} driver pods");
    if failed > 0 {
        bail!("{failed} driver pods still have the finalizer: run this again once the cause above is mended");
    }
    Ok(())
}
