//! Whether a network policy keeps others away from pods (<https://kubernetes.io/docs/concepts/services-networking/network-policies/>).

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::networking::v1::{NetworkPolicy, NetworkPolicyPeer},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::Api;

use super::{call::find, cluster::Cluster, error::Error};

const TIMEOUT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Returns whether the policy of this name limits who may connect to pods with these labels. Other policies may permit more, and
    /// whether the network enforces any isn't known to the API server.
    ///
    /// # Errors
    /// The API server doesn't answer, or the gateway may not read policies.
    pub async fn is_ingress_limited(
        &self,
        namespace: &str,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<bool, Error> {
        let policies: Api<NetworkPolicy> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("reading the network policy {namespace}/{name}");
        let found = find(action, TIMEOUT, name, policies.get(name)).await?;
        Ok(found.is_some_and(|policy| limits_ingress(&policy, labels)))
    }
}

fn limits_ingress(policy: &NetworkPolicy, labels: &BTreeMap<String, String>) -> bool {
    let Some(spec) = &policy.spec else { return false };
    let selects = spec.pod_selector.as_ref().is_none_or(|selector| selects(selector, labels));
    // Every policy is one of ingress, unless it says otherwise.
    let is_of_ingress = spec.policy_types.as_ref().is_none_or(|types| types.iter().any(|one| one == "Ingress"));
    let mut rules = spec.ingress.iter().flatten();
    selects && is_of_ingress && rules.all(|rule| rule.from.as_ref().is_some_and(|from| are_limited(from)))
}

/// Returns whether a list of peers leaves someone out. An empty one stands for everyone.
fn are_limited(peers: &[NetworkPolicyPeer]) -> bool {
    let is_everyone = |peer: &NetworkPolicyPeer| {
        let is_any = |selector: &LabelSelector| *selector == LabelSelector::default();
        let any_namespace = peer.namespace_selector.as_ref().is_some_and(is_any);
        let any_pod = peer.pod_selector.as_ref().is_none_or(is_any);
        any_namespace && any_pod || peer.ip_block.as_ref().is_some_and(|block| block.cidr.ends_with("/0"))
    };
    !peers.is_empty() && !peers.iter().any(is_everyone)
}

/// Returns whether a selector selects an object with these labels. One with an unknown operator selects none.
fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let mut equal = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|expression| {
            let value = labels.get(&expression.key);
            let is_listed = value.is_some_and(|value| expression.values.iter().flatten().any(|one| one == value));
            match expression.operator.as_str() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn limits(spec: &Value) -> bool {
        let policy: NetworkPolicy = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
        limits_ingress(&policy, &BTreeMap::from([("spark-role".to_owned(), "driver".to_owned())]))
    }

    #[test]
    fn a_policy_limits_drivers_unless_it_selects_others_or_admits_everyone() {
        let drivers =
            json!({"matchExpressions": [{"key": "spark-role", "operator": "In", "values": ["driver", "executor"]}]});
        let gateway = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateway"}}});
        let good = json!({"podSelector": drivers, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": drivers}]},
            {"from": [gateway], "ports": [{"port": "spark-connect"}]}]});
        assert!(limits(&good) && limits(&json!({"podSelector": {}})));
        for (field, wrong) in [
            ("podSelector", json!({"matchLabels": {"spark-role": "executor"}})),
            ("policyTypes", json!(["Egress"])),
            ("ingress", json!([{}])),
            ("ingress", json!([{"from": []}])),
            ("ingress", json!([{"from": [gateway, {"namespaceSelector": {}}]}])),
            ("ingress", json!([{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])),
        ] {
            let mut policy = good.clone();
            policy[field] = wrong;
            assert!(!limits(&policy), "{policy}");
        }
    }
}
