//! What is judged.

use std::collections::BTreeMap;

use serde_json::Value;

/// A driver that was built and not yet created.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// All objects as they will be created, the pod among them, each with its `apiVersion` and `kind`.
    pub objects: &'a [Value],
    /// The properties of the driver process, the operator's defaults included.
    pub properties: &'a BTreeMap<String, String>,
    /// The properties whose values are an operator's default, with the name of that default. All others come from the request.
    pub origins: &'a BTreeMap<String, String>,
    /// The driver's pod template of the request, for the causes of violations.
    pub driver_template: Option<&'a Value>,
    /// The executors' pod template, parsed.
    pub executor_template: Option<&'a Value>,
    /// Addresses of the application by where they were given, such as `("appResource", "local:///app.jar")`. Those of the
    /// properties are judged in any case.
    pub resources: &'a [(&'a str, &'a str)],
    /// Whether Kubeflow's operator submitted it.
    pub of_operator: bool,
}

impl Judged<'_> {
    /// Returns a property's value as the driver reads it: without white space around it.
    pub(crate) fn property(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(|value| value.trim())
    }

    /// Returns the value of the first property that is set.
    pub(crate) fn first(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.property(key))
    }

    /// Returns the properties of a family: the rest of the key, and the value.
    pub(crate) fn family(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let from = self.properties.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        from.map_while(move |(key, value)| Some((key.strip_prefix(prefix)?, value.trim())))
    }

    /// Returns the entries of a property that is a list.
    pub(crate) fn list(&self, key: &str) -> impl Iterator<Item = &str> {
        let entries = self.property(key).unwrap_or_default().split(',').map(str::trim);
        entries.filter(|entry| !entry.is_empty())
    }

    /// Returns whether a flag is on. A value that isn't a boolean counts as on.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.property(key).is_some_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case("false"))
    }
}
