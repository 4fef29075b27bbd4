//! The gateway's rights in a cluster: the Roles of `deploy/kubernetes.yaml`, read from that file.

use serde_json::{Value, json};

const MANIFESTS: &str = include_str!("../../../deploy/kubernetes.yaml");
/// The namespace of drivers in the manifests.
const DRIVERS: &str = "spark";
const ACCOUNT: &str = "sparkgate";
const API: &str = "rbac.authorization.k8s.io/v1";

/// The gateway's account, which the manifests bind.
pub const USER: &str = "system:serviceaccount:sparkgate:sparkgate";
/// The account of a gateway that serves all namespaces. It is a separate account, so that its rights are not those of
/// [`USER`].
pub const USER_EVERYWHERE: &str = "system:serviceaccount:sparkgate-everywhere:sparkgate";

/// An object, and the path of the collection in which it is created.
#[derive(Debug, Clone)]
pub struct Grant {
    pub collection: String,
    pub object: Value,
}

/// Returns the line of a token file for this account, in the API server's format.
pub fn token_line(user: &str, token: &str) -> String {
    let namespace = user.split(':').nth(2).unwrap_or_default();
    format!("{token},{user},{user},\"system:serviceaccounts,system:serviceaccounts:{namespace}\"\n")
}

/// Returns the objects that grant [`USER`] its rights for drivers in this namespace, and its rights outside of it.
/// Objects shared by all namespaces may exist already.
pub fn in_namespace(namespace: &str) -> Vec<Grant> {
    let mut grants = Vec::new();
    for (mut role, mut binding) in roles() {
        if role["metadata"]["namespace"] == DRIVERS {
            rename(&mut role["rules"], namespace);
            role["metadata"]["namespace"] = json!(namespace);
            binding["metadata"]["namespace"] = json!(namespace);
        }
        grants.extend([role, binding].map(Grant::new));
    }
    grants
}

/// Returns the objects that grant [`USER_EVERYWHERE`] the same rights in all namespaces: a `ClusterRole` with the same
/// rules.
pub fn everywhere() -> Vec<Grant> {
    let mut grants = Vec::new();
    for (mut role, mut binding) in roles() {
        let name = format!("everywhere-{}", role["metadata"]["name"].as_str().unwrap_or_default());
        let subject = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER_EVERYWHERE});
        binding["subjects"] = json!([subject]);
        for object in [&mut role, &mut binding] {
            object["metadata"]["name"] = json!(name);
        }
        binding["roleRef"]["name"] = json!(name);
        if role["metadata"]["namespace"] == DRIVERS {
            role["kind"] = json!("ClusterRole");
            binding["kind"] = json!("ClusterRoleBinding");
            binding["roleRef"]["kind"] = json!("ClusterRole");
            for object in [&mut role, &mut binding] {
                object["metadata"] = json!({"name": name});
            }
            for rule in role["rules"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
                rule.remove("resourceNames");
            }
        }
        grants.extend([role, binding].map(Grant::new));
    }
    grants
}

impl Grant {
    fn new(object: Value) -> Self {
        let plural = format!("{}s", object["kind"].as_str().unwrap_or_default().to_lowercase());
        let collection = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("/apis/{API}/namespaces/{namespace}/{plural}"),
            None => format!("/apis/{API}/{plural}"),
        };
        Self { collection, object }
    }
}

/// Returns the Roles that are bound to the gateway's account, each with its binding. The Role for drivers comes last:
/// once the API server applies it, it applies the others, too.
fn roles() -> Vec<(Value, Value)> {
    let documents = MANIFESTS.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    let (roles, bindings): (Vec<_>, Vec<_>) =
        documents.filter(|object| object["apiVersion"] == API).partition(|object| object["kind"] == "Role");
    let bound = bindings.into_iter().filter(|binding| {
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        subjects.clone().any(|subject| subject["kind"] == "ServiceAccount" && subject["name"] == ACCOUNT)
    });
    let mut found: Vec<_> = bound
        .map(|binding| {
            let role = roles.iter().find(|role| {
                role["metadata"]["name"] == binding["roleRef"]["name"]
                    && role["metadata"]["namespace"] == binding["metadata"]["namespace"]
            });
            (role.cloned().unwrap(), binding)
        })
        .collect();
    found.sort_by_key(|(role, _)| role["metadata"]["namespace"] == DRIVERS);
    assert!(!found.is_empty(), "the manifests have no Role of the gateway");
    found
}

/// Adapts rules about the namespace of drivers itself.
fn rename(rules: &mut Value, namespace: &str) {
    for rule in rules.as_array_mut().into_iter().flatten() {
        for name in rule["resourceNames"].as_array_mut().into_iter().flatten() {
            if name == DRIVERS {
                *name = json!(namespace);
            }
        }
    }
}
