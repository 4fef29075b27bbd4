//! Volumes and variables, and the objects that they refer to.

use serde_json::Value;

use super::{Seen, fields, image, items, label, named, only, resources::amount, text};

/// Words by which Spark recognizes a secret.
const SECRET: [&str; 5] = ["secret", "password", "token", "access.key", "accesskey"];

/// Returns whether a volume is within the policy.
pub(super) fn permitted(seen: &Seen<'_>, volume: &Value) -> bool {
    let name = text(&volume["name"]);
    fields(volume).filter(|(field, _)| *field != "name").all(|(kind, source)| match kind.as_str() {
        "configMap" => named(seen, "ConfigMap", text(&source["name"])) || executors_own(seen, text(&source["name"])),
        "secret" => named(seen, "Secret", text(&source["secretName"])),
        "emptyDir" if source["sizeLimit"].is_null() => name.starts_with("spark-local-dir-"),
        "emptyDir" => amount(&source["sizeLimit"]) <= amount(&"1Gi".into()),
        "persistentVolumeClaim" => {
            let claim = text(&source["claimName"]);
            named(seen, "PersistentVolumeClaim", claim) || (seen.role == "executor" && claim.ends_with("-exec-1-pvc-0"))
        }
        "projected" => items(&source["sources"]).all(|source| projected(seen, name, source)),
        "csi" => {
            let secret = &source["nodePublishSecretRef"]["name"];
            source["driver"] == "csi.example.org" && (secret.is_null() || named(seen, "Secret", text(secret)))
        }
        "nfs" => source["server"] == "nfs.example.org",
        "image" => image(text(&source["reference"])),
        "ephemeral" => ephemeral(&source["volumeClaimTemplate"]),
        _ => false,
    })
}

/// Returns whether a `ConfigMap` is the one that a driver creates for its executors.
fn executors_own(seen: &Seen<'_>, name: &str) -> bool {
    let id = name.strip_prefix("spark-exec-").and_then(|rest| rest.strip_suffix("-conf-map"));
    seen.role == "executor" && id.is_some_and(|id| id.chars().all(|c| c.is_ascii_hexdigit()))
}

fn projected(seen: &Seen<'_>, volume: &str, source: &Value) -> bool {
    // The API server adds this volume to each pod (`ServiceAccount`).
    let of_account = volume.starts_with("kube-api-access-");
    fields(source).all(|(kind, source)| match kind.as_str() {
        "serviceAccountToken" => text(&source["audience"]).is_empty(),
        "configMap" if of_account => source["name"] == "kube-root-ca.crt",
        "configMap" => named(seen, "ConfigMap", text(&source["name"])),
        "secret" => named(seen, "Secret", text(&source["name"])),
        "downwardAPI" => of_account && items(&source["items"]).all(|item| item["path"] == "namespace"),
        _ => false,
    })
}

fn ephemeral(template: &Value) -> bool {
    let spec = &template["spec"];
    only(spec, &["accessModes", "resources", "storageClassName", "volumeMode"])
        && spec["storageClassName"] == "standard"
        && amount(&spec["resources"]["requests"]["storage"]) <= amount(&"10Gi".into())
        && fields(&template["metadata"]["labels"]).all(|(key, _)| label(key))
}

/// Returns whether a variable is within the policy.
pub(super) fn variable(seen: &Seen<'_>, variable: &Value) -> bool {
    let (name, value, source) = (text(&variable["name"]), text(&variable["value"]), &variable["valueFrom"]);
    let looks_secret = |text: &str| SECRET.iter().any(|word| text.to_ascii_lowercase().contains(word));
    let inline =
        name != "HADOOP_TOKEN_FILE_LOCATION" && !value.is_empty() && (looks_secret(name) || looks_secret(value));
    let secret = &source["secretKeyRef"]["name"];
    let map = &source["configMapKeyRef"]["name"];
    !inline
        && (secret.is_null() || named(seen, "Secret", text(secret)))
        && (map.is_null() || named(seen, "ConfigMap", text(map)))
}

/// Returns whether the source of several variables is within the policy.
pub(super) fn variables(seen: &Seen<'_>, source: &Value) -> bool {
    let (secret, map) = (&source["secretRef"]["name"], &source["configMapRef"]["name"]);
    (secret.is_null() || named(seen, "Secret", text(secret))) && (map.is_null() || named(seen, "ConfigMap", text(map)))
}
