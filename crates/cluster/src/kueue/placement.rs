//! Where Kueue places the pods of an admitted `Workload` (`podset.FromAssignment`).

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use k8s_openapi::api::core::v1::Toleration;
use serde::Deserialize;

use super::{
    admission::Admission,
    api::{DRIVER, EXECUTOR},
};
use crate::manifest::{Overlay, OverlayError, Placement};

/// A `ResourceFlavor`: nodes of one kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Flavor {
    pub node_labels: BTreeMap<String, String>,
    pub tolerations: Vec<Toleration>,
}

impl Admission {
    /// Returns the flavors that were assigned.
    pub fn flavors(&self) -> BTreeSet<&str> {
        self.assignments.iter().flat_map(|set| set.flavors.values().map(String::as_str)).collect()
    }

    /// Returns how many executors were admitted; `None` if the `Workload` has none.
    pub fn executors(&self) -> Option<u32> {
        self.assignments.iter().find(|set| set.name == EXECUTOR)?.count
    }
}

/// Returns how the pods of an admitted `Workload` are placed: by the labels and tolerations of their flavors, and by what admission
/// checks add.
///
/// # Errors
/// [`OverlayError::Conflict`] if two of them contradict each other; [`OverlayError::Unreadable`] if a flavor is missing.
pub fn placements(admission: &Admission, flavors: &BTreeMap<String, Flavor>) -> Result<Overlay, OverlayError> {
    let mut overlay = Overlay::default();
    for (pod, placement) in [(DRIVER, &mut overlay.driver), (EXECUTOR, &mut overlay.executor)] {
        let mut all = mem::take(placement);
        for set in admission.assignments.iter().filter(|set| set.name == pod) {
            // A flavor stands for several resources.
            for name in set.flavors.values().collect::<BTreeSet<_>>() {
                let missing = || OverlayError::Unreadable(format!("the ResourceFlavor {name} doesn't exist"));
                let Flavor { node_labels, tolerations } = flavors.get(name).ok_or_else(missing)?.clone();
                all.merge(pod, Placement { node_selector: node_labels, tolerations, ..Placement::default() })?;
            }
        }
        for update in admission.updates.iter().filter(|update| update.name == pod).cloned() {
            let (labels, annotations) = (update.labels, update.annotations);
            let (node_selector, tolerations) = (update.node_selector, update.tolerations);
            all.merge(pod, Placement { labels, annotations, node_selector, tolerations })?;
        }
        *placement = all;
    }
    Ok(overlay)
}
