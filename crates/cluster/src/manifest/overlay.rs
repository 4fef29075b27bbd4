//! Changes of an attempt's objects that are known only at its launch: where a queue places the pods, how many executors it admits, or
//! more memory than the last attempt had.
//!
//! The stored objects stay as they were accepted. Each launch of the attempt applies the same overlay to them, and a policy judges the
//! result. A driver passes most of an overlay on to its executors by Spark's properties; only tolerations need the executors' pod
//! template.

mod error;
mod objects;
mod placement;
mod pods;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sparkgate_spark::{Quantity, executor_template_of, parse_properties, with_properties};

use self::{error::conflict, objects::Objects};
use crate::manifest::Manifest;

pub use self::{error::OverlayError, placement::Placement};

/// Changes of an attempt's objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Overlay {
    /// What the driver's pod gets.
    #[serde(skip_serializing_if = "Placement::is_empty")]
    pub driver: Placement,
    /// Amounts of the driver's container, by the names of resources. Each replaces the request, and the limit if there is one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub driver_resources: BTreeMap<String, String>,
    /// What each executor's pod gets.
    #[serde(skip_serializing_if = "Placement::is_empty")]
    pub executor: Placement,
    /// Node selectors of the driver and of its executors. Each replaces the one of the same key; `None` removes it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, Option<String>>,
    /// Properties of the driver process. They replace those of the same name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

impl Overlay {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Manifest {
    /// Returns what the driver's container requests of a resource.
    ///
    /// # Errors
    /// [`OverlayError::Unreadable`], as for [`Manifest::with_overlay`].
    pub fn driver_request(&self, resource: &str) -> Result<Option<Quantity>, OverlayError> {
        let mut objects = Objects::parse(self)?;
        let container = pods::container(&mut objects.pod)?;
        Ok(Quantity::from_value(&container["resources"]["requests"][resource]))
    }

    /// Returns the properties of the driver process.
    ///
    /// # Errors
    /// [`OverlayError::Unreadable`], as for [`Manifest::with_overlay`].
    pub fn properties(&self) -> Result<BTreeMap<String, String>, OverlayError> {
        Ok(parse_properties(Objects::parse(self)?.properties_text()?))
    }

    /// Returns the objects with the changes of an overlay. The same overlay gives the same objects at each try.
    ///
    /// # Errors
    /// [`OverlayError::Conflict`] if a label, an annotation or a node selector has another value already;
    /// [`OverlayError::Unreadable`] if the objects aren't those of a driver, which doesn't happen.
    pub fn with_overlay(&self, overlay: &Overlay) -> Result<Self, OverlayError> {
        if overlay.is_empty() {
            return Ok(self.clone());
        }
        let mut objects = Objects::parse(self)?;
        let mut set = objects.select_nodes(&overlay.node_selector)?;
        pods::place_driver(&mut objects.pod, &overlay.driver)?;
        pods::size_driver(&mut objects.pod, &overlay.driver_resources)?;
        let mut also = executor_properties(&objects, &overlay.executor)?;
        if !overlay.executor.tolerations.is_empty() {
            also.extend(objects.tolerate(&overlay.executor.tolerations)?);
        }
        also.extend(overlay.properties.clone());
        set.extend(also.into_iter().map(|(key, value)| (key, Some(value))));
        if !set.is_empty() {
            let text = objects.properties()?;
            *text = Value::String(with_properties(text.as_str().unwrap_or_default(), &set));
        }
        objects.write(self)
    }
}

/// Returns the properties by which a driver places its executors.
fn executor_properties(objects: &Objects, placement: &Placement) -> Result<BTreeMap<String, String>, OverlayError> {
    let present = parse_properties(objects.properties_text()?);
    let template = executor_template_of(&objects.beside);
    let mut set = BTreeMap::new();
    for (field, families, pointer, wanted) in [
        ("label", &["executor.label"][..], "/metadata/labels", &placement.labels),
        ("annotation", &["executor.annotation"], "/metadata/annotations", &placement.annotations),
        ("node selector", &["executor.node.selector", "node.selector"], "/spec/nodeSelector", &placement.node_selector),
    ] {
        for (key, wanted) in wanted {
            let properties =
                families.iter().find_map(|family| present.get(&format!("spark.kubernetes.{family}.{key}")));
            let of_template = || template.as_ref()?.pointer(pointer)?.get(key)?.as_str();
            if let Some(value) = properties.map(String::as_str).or_else(of_template).filter(|value| value != wanted) {
                return Err(conflict("executor", field, key, value, wanted));
            }
            set.insert(format!("spark.kubernetes.{}.{key}", families[0]), wanted.clone());
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests;
