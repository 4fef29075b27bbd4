//! References to existing Secrets and `ConfigMap`s. Those that are created along with the driver are always permitted: their
//! names are generated.

use super::each_container;
use crate::{judgement::Judgement, node::Node};

/// What a reference leads to.
#[derive(Clone, Copy)]
enum Target {
    Secret,
    ConfigMap,
}

pub(super) fn judge(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    for secret in spec.field("imagePullSecrets").items() {
        judge_name(judgement, Target::Secret, &secret.field("name"));
    }
    each_container(spec, |container| {
        for variable in container.field("env").items() {
            let source = variable.field("valueFrom");
            judge_name(judgement, Target::Secret, &source.field("secretKeyRef").field("name"));
            judge_name(judgement, Target::ConfigMap, &source.field("configMapKeyRef").field("name"));
        }
        for source in container.field("envFrom").items() {
            judge_name(judgement, Target::Secret, &source.field("secretRef").field("name"));
            judge_name(judgement, Target::ConfigMap, &source.field("configMapRef").field("name"));
        }
    });
    for volume in spec.field("volumes").items() {
        for (kind, source) in volume.entries() {
            judge_volume(judgement, kind, &source);
        }
    }
}

fn judge_volume(judgement: &mut Judgement<'_>, kind: &str, source: &Node<'_>) {
    match kind {
        "secret" | "azureFile" => judge_name(judgement, Target::Secret, &source.field("secretName")),
        "configMap" => judge_name(judgement, Target::ConfigMap, &source.field("name")),
        "projected" => {
            for projection in source.field("sources").items() {
                judge_name(judgement, Target::Secret, &projection.field("secret").field("name"));
                judge_name(judgement, Target::ConfigMap, &projection.field("configMap").field("name"));
            }
        }
        _ => {
            // Cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos; the last is that of csi.
            for field in ["secretRef", "nodePublishSecretRef"] {
                judge_name(judgement, Target::Secret, &source.field(field).field("name"));
            }
        }
    }
}

fn judge_name(judgement: &mut Judgement<'_>, target: Target, node: &Node<'_>) {
    let rules = judgement.rules;
    let (rule, kind, permitted) = match target {
        Target::Secret => ("secrets", "Secret", &rules.secrets),
        Target::ConfigMap => ("configMaps", "ConfigMap", &rules.config_maps),
    };
    let (Some(permitted), Some(name)) = (permitted, node.text()) else { return };
    if !permitted.matches(name) && !judgement.creates(kind, name) {
        judgement.report(rule, node, format!("it must be one of {}", permitted.describe()));
    }
}
