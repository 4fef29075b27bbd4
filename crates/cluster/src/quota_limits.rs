//! What the quotas of a namespace permit.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{Api, api::ListParams};

use super::{call::call, cluster::Cluster, error::Error};
use sparkgate_spark::Quantity;

const TIMEOUT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Returns what the quotas of a namespace permit, by the names that quotas have for resources. If several limit a resource, the
    /// smallest amount counts. Quotas with scopes limit only some pods, and are left out.
    ///
    /// # Errors
    /// [`Error::Denied`] if the account may not list them; or the API server doesn't answer.
    pub async fn quota_limits(&self, namespace: &str) -> Result<BTreeMap<String, Quantity>, Error> {
        let quotas: Api<ResourceQuota> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("listing the quotas of the namespace {namespace}");
        let all = call(action, TIMEOUT, quotas.list(&ListParams::default())).await?;
        let mut limits = BTreeMap::new();
        for spec in all.into_iter().filter_map(|quota| quota.spec) {
            let is_scoped = spec.scopes.is_some_and(|scopes| !scopes.is_empty()) || spec.scope_selector.is_some();
            let hard = spec.hard.filter(|_| !is_scoped).unwrap_or_default();
            for (resource, limit) in hard {
                let Some(limit) = Quantity::parse(&limit.0) else { continue };
                limits.entry(resource).and_modify(|least: &mut Quantity| *least = limit.min(*least)).or_insert(limit);
            }
        }
        Ok(limits)
    }
}
