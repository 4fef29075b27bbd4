//! Names the run of an attempt to `OpenLineage`'s listener in its driver, as the parent of what Spark runs there. The lineage server of the
//! operator then has one tree: the run with its outcome, and below it Spark's own with inputs and outputs.

use uuid::Uuid;

use super::message::open_lineage::{job_name, job_namespace, run_id};
use sparkgate_cluster::{Manifest, Overlay};
use sparkgate_core::ports::{Attempt, LaunchChange, NoLaunch, Resolution};

/// The listener's class, by the property `spark.extraListeners`.
const LISTENER: &str = "OpenLineageSparkListener";
const LISTENERS: &str = "spark.extraListeners";
/// The properties of a parent begin with this.
const PARENT: &str = "spark.openlineage.parent";

/// Adds the properties of the parent to those of the driver; `None` if the driver has no listener, or if the request names a parent.
pub(super) fn name(installation: Uuid, attempt: &Attempt<'_>, manifest: &mut Manifest) -> Option<Resolution> {
    // The properties of the driver are in the last object. Few have a listener.
    manifest.beside.last().filter(|object| object.get().contains(LISTENER))?;
    match named(installation, attempt, manifest) {
        Ok(change) => Some(Resolution::Changed(Box::new(change?))),
        Err(why) => Some(Resolution::Refused(why)),
    }
}

fn named(installation: Uuid, attempt: &Attempt<'_>, manifest: &mut Manifest) -> Result<Option<LaunchChange>, NoLaunch> {
    let properties = manifest.properties()?;
    let has_listener = properties.get(LISTENERS).is_some_and(|listeners| listeners.contains(LISTENER));
    if !has_listener || properties.keys().any(|key| key.starts_with(PARENT)) {
        return Ok(None);
    }
    let own = ["spark.openlineage.appName", "spark.app.name"];
    let own = own.iter().find_map(|key| properties.get(*key)).map(String::as_str).unwrap_or_default();
    let parent = [
        ("JobNamespace", job_namespace(attempt.namespace)),
        ("JobName", job_name(own, attempt.id.as_str()).to_owned()),
        ("RunId", run_id(installation, attempt.id.as_str(), attempt.number).to_string()),
    ];
    let properties = parent.map(|(key, value)| (format!("{PARENT}{key}"), value)).into();
    let overlay = Overlay { properties, ..Overlay::default() };
    *manifest = manifest.with_overlay(&overlay)?;
    Ok(Some(LaunchChange { by: "lineage", overlay }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parent(properties: &str, number: i32) -> Option<String> {
        let pod = json!({"kind": "Pod", "spec": {"containers": [{"name": "d"}]}});
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"spark.properties": properties}});
        let mut manifest: Manifest =
            serde_json::from_value(json!({"before": [], "pod": pod, "beside": [map]})).unwrap();
        let id = "driver-20260102030405-0001".parse().unwrap();
        let attempt = Attempt { id: &id, number, namespace: "spark", queue: None, pod: "p", is_begun: false };
        let resolution = name(Uuid::nil(), &attempt, &mut manifest)?;
        assert!(matches!(resolution, Resolution::Changed(_)), "{resolution:?}");
        let properties = manifest.properties().unwrap();
        let of = |key: &str| properties[&format!("{PARENT}{key}")].clone();
        Some(format!("{} {} {}", of("JobNamespace"), of("JobName"), of("RunId")))
    }

    #[test]
    fn a_listener_is_given_the_run_of_its_attempt() {
        let listener =
            "spark.extraListeners=a.B,io.openlineage.spark.agent.OpenLineageSparkListener\nspark.app.name=Pi\n";
        let run = run_id(Uuid::nil(), "driver-20260102030405-0001", 2);
        assert_eq!(parent(listener, 2), Some(format!("sparkgate/spark Pi {run}")));
        assert_ne!(parent(listener, 1), parent(listener, 2));
        assert_eq!(parent("spark.app.name=Pi\n", 1), None);
        assert_eq!(parent(&format!("{listener}spark.openlineage.parentRunId=u\n"), 1), None, "it has a parent");
        let mentioned = "spark.app.name=OpenLineageSparkListener\n";
        assert_eq!(parent(mentioned, 1), None);
    }
}
