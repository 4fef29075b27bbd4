//! From the objects of an attempt to those of the next: the same but for their names and the number of the attempt.

use serde_json::Value;

use super::Manifest;
use crate::{cluster::labels, spark::DriverNames};

/// Where the driver reads which labels its executors get: `spark.properties` in the main `ConfigMap`.
const PROPERTIES: &str = "spark.properties";

impl Manifest<Value> {
    /// The same objects for the attempt of this number, under its own names and with the pod's identity. Each name has random digits in it, so that it
    /// is found wherever it stands: in metadata, arguments, variables, addresses, and in the driver's properties. It takes
    /// neither the files that the first attempt was built of nor the release that built it.
    ///
    /// # Errors
    /// What has to carry the number of the attempt isn't there.
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

/// Longer names first: some are the beginning of others.
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

/// The properties with the number of the attempt in the label of the executors.
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
