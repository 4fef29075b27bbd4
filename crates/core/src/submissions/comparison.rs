//! The differences between the requests of two runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A part of two requests that differs: its name, and its value in each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub part: String,
    pub here: Option<String>,
    pub there: Option<String>,
}

/// Returns the parts in which two requests differ, as they are stored.
pub fn differences(here: &Value, there: &Value) -> Vec<Difference> {
    let (here, there) = (parts(here), parts(there));
    let names: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
    let differing = names.into_iter().filter(|name| here.get(*name) != there.get(*name));
    differing
        .map(|name| Difference { part: name.clone(), here: here.get(name).cloned(), there: there.get(name).cloned() })
        .collect()
}

/// Returns the parts of a request by their names.
fn parts(request: &Value) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    for name in ["appResource", "mainClass", "proxyUser", "clientSparkVersion"] {
        if let Some(text) = request[name].as_str().filter(|text| !text.is_empty()) {
            parts.insert(name.to_owned(), text.to_owned());
        }
    }
    for (at, argument) in request["appArgs"].as_array().into_iter().flatten().enumerate() {
        parts.insert(format!("appArgs[{at:03}]"), argument.as_str().unwrap_or_default().to_owned());
    }
    for (group, prefix) in [("environmentVariables", "environment "), ("sparkProperties", "")] {
        for (name, value) in request[group].as_object().into_iter().flatten() {
            parts.insert(format!("{prefix}{name}"), value.as_str().unwrap_or_default().to_owned());
        }
    }
    for template in ["driverPodTemplate", "executorPodTemplate"] {
        if let Some(value) = request.get(template).filter(|value| !value.is_null()) {
            parts.insert(template.to_owned(), value.to_string());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_differ_in_named_parts() {
        let here = json!({"appResource": "a.jar", "mainClass": "", "appArgs": ["1", "2"], "environmentVariables": {"A": "b"},
            "sparkProperties": {"spark.same": "1", "spark.changed": "1", "spark.gone": "x"}, "driverPodTemplate": null});
        let there = json!({"appResource": "b.jar", "appArgs": ["1"], "environmentVariables": {},
            "sparkProperties": {"spark.same": "1", "spark.changed": "2", "spark.new": ""}});
        let found = differences(&here, &there);
        let found: Vec<_> =
            found.iter().map(|one| (one.part.as_str(), one.here.as_deref(), one.there.as_deref())).collect();
        assert_eq!(
            found,
            [
                ("appArgs[001]", Some("2"), None),
                ("appResource", Some("a.jar"), Some("b.jar")),
                ("environment A", Some("b"), None),
                ("spark.changed", Some("1"), Some("2")),
                ("spark.gone", Some("x"), None),
                ("spark.new", None, Some("")),
            ]
        );
        assert!(differences(&here, &here).is_empty());
    }
}
