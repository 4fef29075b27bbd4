//! The uids of namespaces, which identify a cluster.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::{call::find, cluster::Cluster, error::Error};

const TIMEOUT: Duration = Duration::from_secs(5);

/// The namespace that every cluster has for as long as it exists.
pub const SYSTEM: &str = "kube-system";

impl Cluster {
    /// Returns the uids of `kube-system` and of the watched namespaces, as far as they exist and this account may read them.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the API server doesn't answer.
    pub async fn namespace_uids(&self) -> Result<BTreeMap<String, String>, Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let mut uids = BTreeMap::new();
        for name in [SYSTEM].into_iter().chain(self.namespaces.iter().map(String::as_str)) {
            let action = format!("reading the namespace {name}");
            let read = find(action, TIMEOUT, name, namespaces.get_metadata(name));
            match read.await {
                Ok(there) => uids.extend(there.and_then(|there| Some((name.to_owned(), there.metadata.uid?)))),
                Err(error @ Error::Unavailable { .. }) => return Err(error),
                Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "a namespace can't be read"),
            }
        }
        Ok(uids)
    }
}
