//! Asks the API server which rights the account lacks, so that this is known before a launch fails at its last step.

use std::{fmt, time::Duration};

use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, api::PostParams};

use super::{answer::nothing_of_kubernetes, call::call, cluster::Cluster, error::Error};

const TIMEOUT: Duration = Duration::from_secs(10);
const ACTION: &str = "asking for the account's rights";
/// Access reviews that are in flight at once.
const AT_ONCE: usize = 8;

/// The rights that a gateway needs in a namespace of drivers: group, resource, subresource and verbs, as in the Role of
/// `deploy/kubernetes.yaml`. Volcano's `PodGroup`s are not included: a cluster without Volcano has none.
const NEEDED: &[(&str, &str, &str, &[&str])] = &[
    ("", "pods", "", &["create", "get", "list", "watch", "patch", "delete"]),
    ("", "pods", "log", &["get"]),
    ("", "events", "", &["list"]),
    ("", "services", "", &["create", "get"]),
    ("", "configmaps", "", &["create", "get"]),
    ("", "secrets", "", &["create"]),
    ("", "persistentvolumeclaims", "", &["create", "get"]),
    ("networking.k8s.io", "networkpolicies", "", &["create", "get"]),
];

/// The rights that queues of Kueue need in a namespace of drivers, as the chart grants them with `rbac.kueue`.
const NEEDED_FOR_KUEUE: &[(&str, &str, &str, &[&str])] = &[
    ("kueue.x-k8s.io", "workloads", "", &["create", "get", "list", "watch", "delete"]),
    ("kueue.x-k8s.io", "workloads", "status", &["patch"]),
    ("", "pods", "status", &["patch"]),
];
/// Those on objects of Kueue that belong to no namespace.
const NEEDED_FOR_KUEUE_EVERYWHERE: &[(&str, &str, &str, &[&str])] =
    &[("kueue.x-k8s.io", "resourceflavors", "", &["get"]), ("kueue.x-k8s.io", "workloadpriorityclasses", "", &["get"])];

/// A verb that the account may not use on a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingRight {
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verb: &'static str,
}

/// Writes a right in the form of `kubectl auth can-i`: `patch pods`, `get pods/log`,
/// `create networkpolicies.networking.k8s.io`.
impl fmt::Display for MissingRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        for (separator, part) in [(".", self.group), ("/", self.subresource)] {
            if !part.is_empty() {
                write!(f, "{separator}{part}")?;
            }
        }
        Ok(())
    }
}

fn each(needed: &[(&'static str, &'static str, &'static str, &'static [&'static str])]) -> Vec<MissingRight> {
    let mut rights = Vec::new();
    for &(group, resource, subresource, verbs) in needed {
        rights.extend(verbs.iter().map(|verb| MissingRight { group, resource, subresource, verb }));
    }
    rights
}

impl Cluster {
    /// Lists the rights that the account lacks in a namespace of drivers; `None` means all namespaces.
    ///
    /// # Errors
    /// The API server doesn't answer the access reviews.
    pub async fn missing_rights(&self, namespace: Option<&str>) -> Result<Vec<MissingRight>, Error> {
        self.missing(&each(NEEDED), namespace).await
    }

    /// Lists the rights for queues of Kueue that the account lacks in a namespace of drivers; `None` means those on objects that belong to
    /// no namespace.
    ///
    /// # Errors
    /// The API server doesn't answer the access reviews.
    pub async fn missing_kueue_rights(&self, namespace: Option<&str>) -> Result<Vec<MissingRight>, Error> {
        let needed = if namespace.is_some() { NEEDED_FOR_KUEUE } else { NEEDED_FOR_KUEUE_EVERYWHERE };
        self.missing(&each(needed), namespace).await
    }

    async fn missing(&self, rights: &[MissingRight], namespace: Option<&str>) -> Result<Vec<MissingRight>, Error> {
        let mut missing = Vec::new();
        for rights in rights.chunks(AT_ONCE) {
            let answers = try_join_all(rights.iter().map(|right| self.may(*right, namespace))).await?;
            missing.extend(rights.iter().zip(answers).filter(|(_, may)| !may).map(|(right, _)| *right));
        }
        Ok(missing)
    }

    async fn may(&self, right: MissingRight, namespace: Option<&str>) -> Result<bool, Error> {
        let MissingRight { group, resource, subresource, verb } = right;
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    subresource: Some(subresource.to_owned()),
                    verb: Some(verb.to_owned()),
                    namespace: namespace.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let how = PostParams::default();
        let answer = call(ACTION, TIMEOUT, reviews.create(&how, &review)).await?;
        let status = answer.status.ok_or_else(|| nothing_of_kubernetes(ACTION.to_owned()))?;
        Ok(status.allowed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the rules of the Role for drivers' namespaces.
    fn deployed() -> BTreeSet<String> {
        let manifests = include_str!("../../../deploy/kubernetes.yaml").split("\n---\n");
        let mut objects = manifests.map(|text| serde_saphyr::from_str::<serde_json::Value>(text).unwrap());
        let role = objects.find(|object| {
            object["kind"] == "Role"
                && object["metadata"]["name"] == "sparkgate"
                && object["metadata"]["namespace"] == "spark"
        });
        let mut rights = BTreeSet::new();
        for rule in role.unwrap()["rules"].as_array().unwrap() {
            let words = |key: &str| rule[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned());
            for group in words("apiGroups") {
                for resource in words("resources") {
                    rights.extend(words("verbs").map(|verb| format!("{verb} {group}/{resource}")));
                }
            }
        }
        rights
    }

    #[test]
    fn needed_rights_equal_those_that_the_deployment_grants() {
        let mut asked = BTreeSet::new();
        for (group, resource, subresource, verbs) in NEEDED {
            let slash = if subresource.is_empty() { "" } else { "/" };
            asked.extend(verbs.iter().map(|verb| format!("{verb} {group}/{resource}{slash}{subresource}")));
        }
        let granted: BTreeSet<_> = deployed();
        let lacking: Vec<_> = asked.difference(&granted).collect();
        assert!(lacking.is_empty(), "not in deploy/kubernetes.yaml: {lacking:?}");
        let beside: Vec<_> = granted.difference(&asked).filter(|right| !beside_the_check(right)).collect();
        assert!(beside.is_empty(), "granted but never checked: {beside:?}");
    }

    /// Returns whether a right is granted but not checked: those on Volcano's `PodGroup`s, on the namespaces that identify a cluster, and on
    /// the quotas from which the capacity of queues is learned. A gateway launches without them, too.
    fn beside_the_check(right: &str) -> bool {
        right.ends_with("/podgroups") || ["get /namespaces", "list /resourcequotas"].contains(&right)
    }

    #[test]
    fn a_right_is_named_as_in_kubectl_auth_can_i() {
        let named =
            |group, resource, subresource, verb| MissingRight { group, resource, subresource, verb }.to_string();
        assert_eq!(named("", "pods", "", "patch"), "patch pods");
        assert_eq!(named("", "pods", "log", "get"), "get pods/log");
        assert_eq!(
            named("networking.k8s.io", "networkpolicies", "", "create"),
            "create networkpolicies.networking.k8s.io"
        );
    }
}
