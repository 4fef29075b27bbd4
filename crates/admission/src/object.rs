//! One generated object.

use serde_json::Value;

/// The label of a tenant's namespaces, with the tenant's name. The admission policies select namespaces by it.
pub(crate) const TENANT: &str = "sparkgate.dev/tenant";
/// The name of the objects that a namespace has once.
pub(crate) const NAME: &str = "sparkgate";

/// An object that a cluster must have.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Why the object is needed; a comment in the YAML.
    pub purpose: String,
    /// The object, to be applied.
    pub manifest: Value,
}

impl Object {
    pub(crate) fn new(purpose: impl Into<String>, manifest: Value) -> Self {
        Self { purpose: purpose.into(), manifest }
    }

    /// Returns the kind, such as `Role`.
    pub fn kind(&self) -> &str {
        self.manifest["kind"].as_str().unwrap_or_default()
    }

    /// Returns the namespace; `None` for an object of the whole cluster.
    pub fn namespace(&self) -> Option<&str> {
        self.manifest["metadata"]["namespace"].as_str()
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.manifest["metadata"]["name"].as_str().unwrap_or_default()
    }
}
