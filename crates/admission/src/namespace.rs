//! The namespaces of a tenant: their labels and quotas.

use std::num::NonZeroU32;

use serde_json::{Map, Value, json};
use sparkgate_policy::{PodSecurity, Quota};

use crate::{
    object::{NAME, Object, TENANT},
    tenant::TenantRules,
};

/// Returns the namespace with its labels (<https://kubernetes.io/docs/concepts/security/pod-security-admission/>).
pub(crate) fn namespace(tenant: &TenantRules<'_>, namespace: &str) -> Object {
    let level = match tenant.policy.pod_security() {
        PodSecurity::Privileged => "privileged",
        PodSecurity::Baseline => "baseline",
        PodSecurity::Restricted => "restricted",
    };
    let purpose = format!(
        "A namespace of tenant {}. The API server refuses pods that break the Pod Security level.\n\
         The admission policies at the end select namespaces by the label {TENANT}.",
        tenant.name
    );
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace,
            "labels": {
                "pod-security.kubernetes.io/enforce": level,
                "pod-security.kubernetes.io/enforce-version": "latest",
                TENANT: tenant.name
            }
        }
    });
    Object::new(purpose, manifest)
}

/// Returns the quota of a namespace, unless the policy bounds nothing
/// (<https://kubernetes.io/docs/concepts/policy/resource-quotas/>).
pub(crate) fn quota(tenant: &TenantRules<'_>, namespace: &str, applications: NonZeroU32) -> Option<Object> {
    let Quota { pods, cores, memory, storage } = tenant.policy.quota(applications.get());
    let amounts = [
        ("pods", pods.map(|pods| pods.to_string())),
        ("requests.cpu", cores),
        ("requests.memory", memory),
        ("requests.storage", storage),
    ];
    let hard: Map<String, Value> =
        amounts.into_iter().filter_map(|(name, amount)| Some((name.to_owned(), amount?.into()))).collect();
    if hard.is_empty() {
        return None;
    }
    let purpose = format!(
        "Room for {applications} {} of the largest size that the policy permits. A running driver can ask for other executors\n\
         than its properties say (ResourceProfile): this limits them. A driver beyond the quota fails with QUOTA_EXCEEDED.",
        if applications.get() == 1 { "application" } else { "applications" }
    );
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": { "name": NAME, "namespace": namespace },
        "spec": { "hard": hard }
    });
    Some(Object::new(purpose, manifest))
}
