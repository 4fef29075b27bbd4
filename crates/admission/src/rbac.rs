//! Accounts of drivers, their rights, and the rights of the gateway.

use serde_json::{Value, json};

use crate::{
    admission_policy,
    gateway::GatewayAccount,
    object::{NAME, Object},
    tenant::TenantRules,
};

const DRIVERS: &str = "spark-driver";
const API_GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// Returns the accounts of drivers in a namespace, and their rights. A tenant that lists no accounts has none here.
pub(crate) fn drivers(tenant: &TenantRules<'_>, namespace: &str) -> Vec<Object> {
    if tenant.accounts.is_empty() {
        return Vec::new();
    }
    let account = |name: &String| {
        let manifest = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": name, "namespace": namespace }
        });
        Object::new("An account of drivers and executors.", manifest)
    };
    let mut objects: Vec<Object> = tenant.accounts.iter().map(account).collect();
    let purpose = "A driver creates its executors itself, and deletes them and their objects by label. There are no rights on Secrets.";
    // What Spark deletes by label at its end it may list and delete in any case.
    let (created, deleted): (&[&str], &[&str]) = match tenant.policy.permits_volume("persistentVolumeClaim") {
        true => (&["configmaps", "persistentvolumeclaims"], &["services"]),
        false => (&["configmaps"], &["persistentvolumeclaims", "services"]),
    };
    let rules = json!([
        {
            "apiGroups": [""],
            "resources": ["pods"],
            "verbs": ["create", "get", "list", "watch", "patch", "delete", "deletecollection"]
        },
        {
            "apiGroups": [""],
            "resources": created,
            "verbs": ["create", "get", "list", "watch", "delete", "deletecollection"]
        },
        { "apiGroups": [""], "resources": deleted, "verbs": ["list", "delete", "deletecollection"] }
    ]);
    objects.push(role(purpose, DRIVERS, namespace, &rules));
    let subjects: Vec<Value> = tenant.accounts.iter().map(|name| subject(namespace, name)).collect();
    objects.push(binding("The accounts have the rights of drivers.", DRIVERS, namespace, &subjects));
    objects
}

/// Returns the rights of the gateway in a namespace: those of `deploy/kubernetes.yaml`, and those that the check of these objects
/// needs. `learns_capacity` says whether queues learn their capacity from quotas.
pub(crate) fn gateway(
    tenant: &TenantRules<'_>,
    gateway: &GatewayAccount,
    namespace: &str,
    learns_capacity: bool,
) -> Vec<Object> {
    let purpose = "The gateway creates drivers and the objects that they own, and watches their pods. patch is for its finalizer.\n\
                   get on these objects distinguishes its own from others of the same name. Secrets are created and never read.\n\
                   get on namespaces identifies the cluster; the last two rules are for the check that these objects exist.";
    let mut rules = json!([
        {
            "apiGroups": [""],
            "resources": ["pods"],
            "verbs": ["create", "get", "list", "watch", "patch", "delete"]
        },
        { "apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"] },
        { "apiGroups": [""], "resources": ["events"], "verbs": ["list"] },
        {
            "apiGroups": [""],
            "resources": ["services", "configmaps", "persistentvolumeclaims"],
            "verbs": ["create", "get"]
        },
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] },
        { "apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["create", "get"] },
        { "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"] },
        {
            "apiGroups": ["scheduling.volcano.sh"],
            "resources": ["podgroups"],
            "verbs": ["create", "get", "patch", "delete"]
        },
        { "apiGroups": [""], "resources": ["resourcequotas", "serviceaccounts"], "verbs": ["get"] },
        { "apiGroups": [API_GROUP], "resources": ["roles", "rolebindings"], "verbs": ["get"] }
    ]);
    if learns_capacity {
        let list = json!({ "apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["list"] });
        rules.as_array_mut().into_iter().for_each(|rules| rules.push(list.clone()));
    }
    if tenant.policy.uses_kueue() {
        rules.as_array_mut().into_iter().for_each(|rules| rules.extend(kueue_rules()));
    }
    let account = subject(&gateway.namespace, &gateway.name);
    vec![
        role(purpose, NAME, namespace, &rules),
        binding("The gateway has these rights in this namespace.", NAME, namespace, &[account]),
    ]
}

/// Returns the rights for queues of Kueue.
fn kueue_rules() -> [Value; 3] {
    [
        json!({
            "apiGroups": ["kueue.x-k8s.io"],
            "resources": ["workloads"],
            "verbs": ["create", "get", "list", "watch", "delete"]
        }),
        json!({ "apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"], "verbs": ["patch"] }),
        json!({ "apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"] }),
    ]
}

/// Returns the rights with which the gateway checks that the objects of the whole cluster exist.
pub(crate) fn check(tenants: &[TenantRules<'_>], gateway: &GatewayAccount) -> [Object; 2] {
    let name = format!("{}.admission", gateway.namespace);
    let policies = admission_policy::names(tenants, gateway);
    let role = json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": [
            {
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
                "resourceNames": policies,
                "verbs": ["get"]
            },
            {
                "apiGroups": [API_GROUP],
                "resources": ["clusterroles", "clusterrolebindings"],
                "resourceNames": [name],
                "verbs": ["get"]
            }
        ]
    });
    let binding = json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": API_GROUP, "kind": "ClusterRole", "name": name },
        "subjects": [subject(&gateway.namespace, &gateway.name)]
    });
    [
        Object::new("The gateway reads the admission policies, to check that they exist.", role),
        Object::new("The gateway has these rights.", binding),
    ]
}

fn role(purpose: &str, name: &str, namespace: &str, rules: &Value) -> Object {
    let manifest = json!({
        "apiVersion": API_VERSION,
        "kind": "Role",
        "metadata": { "name": name, "namespace": namespace },
        "rules": rules
    });
    Object::new(purpose, manifest)
}

fn binding(purpose: &str, name: &str, namespace: &str, subjects: &[Value]) -> Object {
    let manifest = json!({
        "apiVersion": API_VERSION,
        "kind": "RoleBinding",
        "metadata": { "name": name, "namespace": namespace },
        "roleRef": { "apiGroup": API_GROUP, "kind": "Role", "name": name },
        "subjects": subjects
    });
    Object::new(purpose, manifest)
}

fn subject(namespace: &str, name: &str) -> Value {
    json!({ "kind": "ServiceAccount", "name": name, "namespace": namespace })
}
