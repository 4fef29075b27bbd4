//! Who may connect to drivers and executors.

use serde_json::json;

use crate::{gateway::GatewayAccount, object::Object};

/// The name of the policy in each namespace.
pub const NETWORK_POLICY: &str = "sparkgate-spark";

/// Returns the policy that lets drivers and executors of a namespace reach each other, the gateway the drivers' Spark UIs and servers of Spark Connect, and nothing
/// else reach them (<https://kubernetes.io/docs/concepts/services-networking/network-policies/>).
pub(crate) fn ingress(namespace: &str, gateway: &GatewayAccount) -> Object {
    let purpose = "Drivers and executors are reached only by drivers and executors of this namespace, and Spark UIs and\n\
                   servers of Spark Connect by the namespace of the gateway, if the cluster's network plugin enforces policies. A selector can't compare the applications of two pods: force spark.authenticate, too.\n\
                   Egress is open: what a job must reach is the operator's to say (docs/operate/admission.md has an example).";
    let spark =
        json!({ "matchExpressions": [{ "key": "spark-role", "operator": "In", "values": ["driver", "executor"] }] });
    let manifest = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": { "name": NETWORK_POLICY, "namespace": namespace },
        "spec": {
            "podSelector": spark,
            "policyTypes": ["Ingress"],
            "ingress": [
                { "from": [{ "podSelector": spark }] },
                {
                    "from": [{ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": gateway.namespace } } }],
                    "ports": [{ "protocol": "TCP", "port": "spark-ui" }, { "protocol": "TCP", "port": "spark-connect" }]
                }
            ]
        }
    });
    Object::new(purpose, manifest)
}
