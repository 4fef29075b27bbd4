//! Volumes by their types, and what they may refer to. Secrets and `ConfigMap`s are judged in `references`, images in `images`.

use serde_json::Value;

use super::objects;
use crate::{
    executor::ON_DEMAND,
    judgement::Judgement,
    node::{Node, Root},
    pattern::Patterns,
    volume::{is_below, normal_path},
};

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
