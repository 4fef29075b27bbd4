//! The lists of a policy as regular expressions, for Kubernetes' own rules.

use crate::{compiled::Rules, kueue, pattern::Patterns};

/// A list of names that the policy permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Audiences of tokens besides the API server.
    Audiences,
    Claims,
    ConfigMaps,
    CsiDrivers,
    NfsServers,
    /// Labels of nodes, as `key` or `key=value`.
    NodeSelectors,
    PriorityClasses,
    /// Queues of Volcano and Kueue.
    Queues,
    RuntimeClasses,
    Schedulers,
    Secrets,
    StorageClasses,
    /// Keys of taints.
    Tolerations,
}

/// Keys of labels or annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataKeys {
    Labels,
    Annotations,
}

impl Rules {
    pub(crate) fn names(&self, names: Names) -> Option<&Patterns> {
        match names {
            Names::Audiences => Some(&self.audiences),
            Names::Claims => self.claims.as_ref(),
            Names::ConfigMaps => self.config_maps.as_ref(),
            Names::CsiDrivers => self.csi_drivers.as_ref(),
            Names::NfsServers => self.nfs_servers.as_ref(),
            Names::NodeSelectors => self.node_selectors.as_ref(),
            Names::PriorityClasses => self.priority_classes.as_ref(),
            Names::Queues => self.queues.as_ref(),
            Names::RuntimeClasses => self.runtime_classes.as_ref(),
            Names::Schedulers => self.schedulers.as_ref(),
            Names::Secrets => self.secrets.as_ref(),
            Names::StorageClasses => self.storage_classes.as_ref(),
            Names::Tolerations => self.tolerations.as_ref(),
        }
    }

    /// Returns the permitted keys, if only some are, and the refused ones.
    pub(crate) fn metadata_keys(&self, keys: MetadataKeys) -> (Option<&Patterns>, &Patterns) {
        let keys = match keys {
            MetadataKeys::Labels => &self.labels,
            MetadataKeys::Annotations => &self.annotations,
        };
        (keys.allow.as_ref(), &keys.deny)
    }

    /// Returns whether the list of schedulers names Kueue.
    pub(crate) fn uses_kueue(&self) -> bool {
        self.schedulers.as_ref().is_some_and(|permitted| permitted.contains(kueue::NAME))
    }

    /// Returns whether a pod may tolerate all taints at once.
    pub(crate) fn tolerates_all(&self) -> bool {
        self.tolerations.as_ref().is_some_and(|permitted| permitted.contains("*") || permitted.contains("**"))
    }
}
