//! Where a pod runs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use serde::{Deserialize, Serialize};

use super::error::{OverlayError, conflict};

/// Metadata of a pod, and where it may run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Placement {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

impl Placement {
    /// Returns whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds another placement.
    ///
    /// # Errors
    /// [`OverlayError::Conflict`] if the two have different values of a key.
    pub fn merge(&mut self, pod: &'static str, other: Self) -> Result<(), OverlayError> {
        for (field, own, theirs) in [
            ("label", &mut self.labels, other.labels),
            ("annotation", &mut self.annotations, other.annotations),
            ("node selector", &mut self.node_selector, other.node_selector),
        ] {
            for (key, wanted) in theirs {
                if let Some(present) = own.get(&key).filter(|present| **present != wanted) {
                    return Err(conflict(pod, field, &key, present, &wanted));
                }
                own.insert(key, wanted);
            }
        }
        for toleration in other.tolerations {
            if !self.tolerations.contains(&toleration) {
                self.tolerations.push(toleration);
            }
        }
        Ok(())
    }
}
