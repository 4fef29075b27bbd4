//! Derives the objects of the next attempt from those of the last: only their names and the number of the attempt differ.

use serde_json::Value;

use super::Manifest;
use crate::labels;
use sparkgate_spark::DriverNames;

/// The key in the main `ConfigMap` under which the driver finds the labels of its executors.
const PROPERTIES: &str = "spark.properties";

impl Manifest<Value> {
    /// Returns the same objects for the attempt of this number, under its own names and with the identity of its pod.
    ///
    /// Each name contains random digits, so that every occurrence of it is found: in metadata, arguments, variables, addresses,
    /// and in the driver's properties. This needs neither the files that the first attempt was built from nor the release that
    /// built it.
    ///
    /// # Errors
    /// An object or label that has to carry the number of the attempt is missing.
    pub fn for_attempt(
        mut self,
        attempt: i32,
        old: &DriverNames,
        new: &DriverNames,
        identity: &str,
    ) -> Result<Self, String> {
        let renames = renames(old, new);
        for object in self.before.iter_mut().chain([&mut self.pod]).chain(&mut self.beside) {
            rename(object, &renames);
        }
        let label = self.pod.pointer_mut(&format!("/metadata/labels/{}", labels::ATTEMPT.replace('/', "~1")));
        let label = label.ok_or("the pod has no label for the attempt")?;
        *label = attempt.to_string().into();
        self.pod["metadata"]["annotations"][labels::IDENTITY] = identity.into();
        let is_main =
            |object: &&mut Value| object["kind"] == "ConfigMap" && object["metadata"]["name"] == *new.config_map;
        let main = self.beside.iter_mut().find(is_main).ok_or("there is no main ConfigMap")?;
        let text = main["data"][PROPERTIES].as_str().ok_or("the main ConfigMap has no properties")?;
        let numbered = numbered(text, attempt).ok_or("the executors have no label for the attempt")?;
        main["data"][PROPERTIES] = numbered.into();
        Ok(self)
    }
}

/// Returns the pairs of old and new names, longer names first: some names are a prefix of others.
fn renames<'a>(old: &'a DriverNames, new: &'a DriverNames) -> Vec<(String, String)> {
    let pairs = |names: &DriverNames| {
        let DriverNames { app_id, resource_prefix, driver_pod, driver_service, config_map, local_dir } = names.clone();
        [app_id, resource_prefix, driver_pod, driver_service, config_map, local_dir.to_string()]
    };
    let mut renames: Vec<_> = pairs(old).into_iter().zip(pairs(new)).filter(|(old, new)| old != new).collect();
    renames.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
    renames
}

fn rename(value: &mut Value, renames: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (old, new) in renames {
                if text.contains(old.as_str()) {
                    *text = text.replace(old.as_str(), new);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, renames)),
        Value::Object(members) => members.values_mut().for_each(|value| rename(value, renames)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the properties with the number of the attempt in the label of the executors; `None` if there is no such label.
fn numbered(properties: &str, attempt: i32) -> Option<String> {
    let key = format!("spark.kubernetes.executor.label.{}=", labels::ATTEMPT);
    let mut found = false;
    let lines = properties.split_inclusive('\n').map(|line| {
        if !line.starts_with(&key) {
            return line.to_owned();
        }
        found = true;
        format!("{key}{attempt}\n")
    });
    let text = lines.collect();
    found.then_some(text)
}

#[cfg(test)]
mod tests;
