//! A policy and its binding, and the variables that policies share.

use serde_json::{Value, json};

use crate::{
    cel::literal,
    object::{Object, TENANT},
};

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The uid of the pod whose token makes the request, or an empty text. The API server takes it from a token that is bound to its
/// pod, as all tokens are that the kubelet mounts.
pub(super) const REQUESTING_POD: (&str, &str) =
    ("requestingPod", "request.userInfo.?extra[?'authentication.kubernetes.io/pod-uid'][?0].orValue('')");
pub(super) const LABELS: (&str, &str) = ("labels", "object.metadata.?labels.orValue({})");
/// Whether the pod is an executor that belongs to the requesting pod alone (Spark's `ExecutorPodsAllocator`).
pub(super) const OWN_EXECUTOR: (&str, &str) = (
    "isOwnExecutor",
    "variables.labels[?'spark-role'].orValue('') == 'executor' && variables.requestingPod != '' &&\n\
     object.metadata.?ownerReferences.orValue([]).size() == 1 &&\n\
     object.metadata.ownerReferences.all(owner,\n\
     \x20 owner.apiVersion == 'v1' && owner.kind == 'Pod' && owner.uid == variables.requestingPod)",
);

/// A rule of an admission policy.
pub(super) struct Validation {
    expression: String,
    message: Message,
}

/// The message of a refusal.
enum Message {
    Text(String),
    Expression(String),
}

impl Validation {
    /// Creates a rule with a constant message.
    pub(super) fn new(expression: impl Into<String>, message: &str) -> Self {
        Self { expression: expression.into(), message: Message::Text(message.to_owned()) }
    }

    /// Creates a rule whose message ends with the values that break it.
    pub(super) fn naming(expression: impl Into<String>, message: &str, values: &str) -> Self {
        let message = format!("{} + {values}.join(', ')", literal(&format!("{message}: ")));
        Self { expression: expression.into(), message: Message::Expression(message) }
    }

    fn manifest(&self) -> Value {
        let (field, message) = match &self.message {
            Message::Text(text) => ("message", text),
            Message::Expression(expression) => ("messageExpression", expression),
        };
        json!({ "expression": self.expression, field: message, "reason": "Forbidden" })
    }
}

/// What a policy concerns: objects of the core API, without their subresources. Kubelets write the status, the scheduler binds.
pub(super) struct Concerned<'a> {
    pub(super) resource: &'a str,
    pub(super) operations: &'a [&'a str],
}

/// Returns a policy and its binding.
pub(super) fn policy_and_binding(
    name: &str,
    purpose: &str,
    concerned: Concerned<'_>,
    variables: &[(&str, String)],
    validations: &[Validation],
    tenants: &[&str],
) -> [Object; 2] {
    let variables: Vec<Value> =
        variables.iter().map(|(name, expression)| json!({ "name": name, "expression": expression })).collect();
    let validations: Vec<Value> = validations.iter().map(Validation::manifest).collect();
    // The defaults are written out, so that a comparison with the cluster's object can be exact.
    let policy = json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": [concerned.resource],
                    "operations": concerned.operations,
                    "scope": "Namespaced"
                }]
            },
            "variables": variables,
            "validations": validations
        }
    });
    let binding = json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": {
            "policyName": name,
            "matchResources": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": { "matchExpressions": [{ "key": TENANT, "operator": "In", "values": tenants }] },
                "objectSelector": {}
            },
            "validationActions": ["Deny"]
        }
    });
    [Object::new(purpose, policy), Object::new("The policy holds in these namespaces.", binding)]
}
