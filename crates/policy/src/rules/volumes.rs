//! Volumes by their types, and what they may refer to. Secrets and `ConfigMap`s are judged in `references`, images in `images`.

use serde_json::Value;

use super::objects;
use crate::{
    executor::ON_DEMAND,
    judgement::Judgement,
    node::{Node, Root},
    pattern::Patterns,
};

/// The types of volumes that Kubernetes has, as the fields of a volume name them.
pub(crate) const TYPES: &[&str] = &[
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
];

/// The sources of a projected volume.
pub(crate) const PROJECTED_SOURCES: &[&str] =
    &["clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken"];

pub(super) fn judge(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    for volume in spec.field("volumes").items() {
        for (kind, source) in volume.entries() {
            if kind != "name" && !source.value.is_null() {
                judge_source(judgement, kind, &source);
            }
        }
    }
}

fn judge_source(judgement: &mut Judgement<'_>, kind: &str, source: &Node<'_>) {
    let rules = judgement.rules;
    if !rules.volumes.iter().any(|permitted| permitted == kind) {
        let message = format!("the type `{kind}` is not permitted; the types are {}", rules.volumes.join(", "));
        judgement.report("volumes", source, message);
    }
    match kind {
        "hostPath" => judge_host_path(judgement, &source.field("path")),
        "persistentVolumeClaim" => judge_claim(judgement, &source.field("claimName")),
        "csi" | "flexVolume" => {
            judge_name(judgement, "csiDrivers", &source.field("driver"), rules.csi_drivers.as_ref())
        }
        "nfs" => judge_name(judgement, "nfsServers", &source.field("server"), rules.nfs_servers.as_ref()),
        "ephemeral" => {
            let template = source.field("volumeClaimTemplate");
            objects::judge_metadata(judgement, &template.field("metadata"));
            objects::judge_claim(judgement, &template.field("spec"));
        }
        "projected" => {
            for projection in source.field("sources").items() {
                for (kind, projected) in projection.entries() {
                    if !projected.value.is_null() && !rules.projected_sources.iter().any(|permitted| permitted == kind)
                    {
                        let permitted = rules.projected_sources.join(", ");
                        let message = format!("the source `{kind}` is not permitted; the sources are {permitted}");
                        judgement.report("projectedSources", &projected, message);
                    }
                }
            }
        }
        _ => {}
    }
}

fn judge_name(judgement: &mut Judgement<'_>, rule: &str, node: &Node<'_>, permitted: Option<&Patterns>) {
    if let Some(permitted) = permitted
        && !permitted.matches(node.text().unwrap_or_default())
    {
        judgement.report(rule, node, format!("it must be one of {}", permitted.describe()));
    }
}

fn judge_host_path(judgement: &mut Judgement<'_>, path: &Node<'_>) {
    let prefixes = &judgement.rules.host_paths;
    let normal = path.text().and_then(normal_path);
    let permitted = normal.is_some_and(|normal| prefixes.iter().any(|prefix| is_below(&normal, prefix)));
    if !permitted {
        let directories = if prefixes.is_empty() { "none".to_owned() } else { prefixes.join(", ") };
        judgement.report("hostPaths", path, format!("it must be below one of these directories: {directories}"));
    }
}

fn is_below(path: &str, prefix: &str) -> bool {
    prefix == "/" || path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns an absolute path without empty and `.` segments. `None` for a relative path and one with `..`.
pub(crate) fn normal_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix('/')?;
    let mut normal = String::new();
    for segment in rest.split('/') {
        match segment {
            "" | "." => {}
            ".." => return None,
            segment => {
                normal.push('/');
                normal.push_str(segment);
            }
        }
    }
    Some(if normal.is_empty() { "/".to_owned() } else { normal })
}

/// Judges the name of a claim that a pod mounts. A claim that is created for the pod under a generated name is permitted.
fn judge_claim(judgement: &mut Judgement<'_>, name: &Node<'_>) {
    let Some(permitted) = &judgement.rules.claims else { return };
    let text = name.value.as_str().unwrap_or_default();
    let generated = match name.root() {
        Root::Executor => text.contains(ON_DEMAND),
        _ => judgement.creates("PersistentVolumeClaim", text) && !objects::is_chosen(judgement, text),
    };
    if !generated && !permitted.matches(text) {
        judgement.report("claims", name, format!("it must be one of {}", permitted.describe()));
    }
}

/// Returns whether a volume is one of Spark's own scratch directories (`LocalDirsFeatureStep`).
pub(super) fn is_scratch(volume: &Value) -> bool {
    volume["name"].as_str().is_some_and(|name| name.starts_with("spark-local-dir-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_node_is_compared_in_its_normal_form() {
        assert_eq!(normal_path("//data/./x/").as_deref(), Some("/data/x"));
        assert_eq!(normal_path("/").as_deref(), Some("/"));
        assert_eq!(normal_path("/data/../etc"), None);
        assert_eq!(normal_path("data"), None);
        assert!(is_below("/data/x", "/data") && is_below("/data", "/data") && is_below("/x", "/"));
        assert!(!is_below("/database", "/data"));
    }
}
