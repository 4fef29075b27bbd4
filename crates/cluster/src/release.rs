//! Removes our finalizer from all driver pods, as an uninstall needs.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use serde::Deserialize;

use super::{
    cluster::Cluster,
    error::Error,
    labels,
    watch::pods::{Page, Pods},
};

const PAGE: u32 = 500;
/// Pods whose finalizer is removed concurrently.
const AT_ONCE: usize = 8;

/// The result of removing our finalizer from the pods that had it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Released {
    pub released: usize,
    /// Pods that still have the finalizer, by namespace and name.
    pub failed: BTreeSet<String>,
}

/// The part of a pod that is read.
#[derive(Deserialize)]
struct Held {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    #[serde(default)]
    finalizers: Vec<String>,
}

impl Cluster {
    /// Removes our finalizer from all driver pods in the watched namespaces, those of every installation. This goes page by
    /// page, so that a later error doesn't undo or prevent what comes before it.
    ///
    /// # Errors
    /// The pods can't be listed any further. A failure with one pod is logged and counted in the result.
    pub async fn release_finalizers(&self) -> Result<Released, Error> {
        let mut all = Released::default();
        if self.namespaces.is_empty() {
            self.release_in(None, &mut all).await?;
        }
        for namespace in self.namespaces.iter() {
            self.release_in(Some(namespace), &mut all).await?;
        }
        Ok(all)
    }

    async fn release_in(&self, namespace: Option<&str>, all: &mut Released) -> Result<(), Error> {
        let pods = Pods::for_all_installations(self, namespace);
        let mut next: Option<String> = None;
        loop {
            let text = match pods.page(PAGE, next.as_deref()).await {
                Ok(text) => text,
                // The server no longer has the version that the list shows. Pods that are already released have no
                // finalizer in the next list.
                Err(Error::Refused { code: 410, message, .. }) if next.is_some() => {
                    tracing::warn!("listing the driver pods again from the start: {message}");
                    next = None;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let page: Page<'_> = serde_json::from_str(&text).map_err(|error| Error::Unavailable {
                action: "reading a list of driver pods".to_owned(),
                source: Box::new(error),
            })?;
            let held = page.items.iter().flatten().filter_map(|pod| held(pod.get()));
            let mut released = std::pin::pin!(
                stream::iter(held).map(|pod| async { (self.release(&pod).await, pod) }).buffer_unordered(AT_ONCE)
            );
            while let Some((released, pod)) = released.next().await {
                let name = format!("{}/{}", pod.namespace, pod.name);
                match released {
                    Ok(()) => {
                        all.released += 1;
                        all.failed.remove(&name);
                    }
                    Err(error) => {
                        tracing::error!(
                            error = &error as &dyn std::error::Error,
                            "can't remove the finalizer of a driver pod"
                        );
                        all.failed.insert(name);
                    }
                }
            }
            next = Some(page.metadata.next).filter(|next| !next.is_empty());
            if next.is_none() {
                return Ok(());
            }
        }
    }

    async fn release(&self, pod: &Metadata) -> Result<(), Error> {
        self.remove_finalizer(&pod.namespace, &pod.name, &pod.uid).await
    }
}

/// Returns the pod's metadata if our finalizer holds it. A pod that can't be read is logged and skipped.
fn held(text: &str) -> Option<Metadata> {
    match serde_json::from_str::<Held>(text) {
        Ok(Held { metadata }) => {
            Some(metadata).filter(|pod| pod.finalizers.iter().any(|name| name == labels::FINALIZER))
        }
        Err(error) => {
            let pod: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
            let field = |name: &str| pod["metadata"][name].as_str().unwrap_or_default();
            tracing::error!(namespace = field("namespace"), pod = field("name"), %error, "a pod can't be read and is skipped");
            None
        }
    }
}

#[cfg(test)]
mod tests;
