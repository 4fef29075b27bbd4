//! Reads the objects with which a cluster enforces the boundaries of tenants, and the account that reads them.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::Value;

use super::{
    call::{call, find},
    cluster::Cluster,
    error::Error,
};

const TIMEOUT: Duration = Duration::from_secs(10);

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// The kinds: group, kind and plural. All have the version `v1`.
const KINDS: [(&str, &str, &str); 10] = [
    ("", "Namespace", "namespaces"),
    ("", "ResourceQuota", "resourcequotas"),
    ("", "ServiceAccount", "serviceaccounts"),
    ("networking.k8s.io", "NetworkPolicy", "networkpolicies"),
    (RBAC, "Role", "roles"),
    (RBAC, "RoleBinding", "rolebindings"),
    (RBAC, "ClusterRole", "clusterroles"),
    (RBAC, "ClusterRoleBinding", "clusterrolebindings"),
    (ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
];

impl Cluster {
    /// Returns an object of one of the kinds that `sparkgate admission` generates, if it exists.
    ///
    /// # Errors
    /// [`Error::Denied`] if the account may not read it; or the API server doesn't answer.
    pub async fn object(&self, kind: &str, namespace: Option<&str>, name: &str) -> Result<Option<Value>, Error> {
        let action = format!("reading the {kind} {name}");
        let Some(resource) = resource(kind) else {
            let message = "objects of this kind are not read".to_owned();
            return Err(Error::Refused { action, code: 400, reason: "BadRequest".to_owned(), message });
        };
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let there = find(action, TIMEOUT, name, api.get(name)).await?;
        Ok(there.and_then(|object| serde_json::to_value(object).ok()))
    }

    /// Returns the name of the account as a user of the API server, such as `system:serviceaccount:sparkgate:sparkgate`.
    ///
    /// # Errors
    /// The API server doesn't answer, or doesn't serve `selfsubjectreviews` (before Kubernetes 1.28).
    pub async fn own_user(&self) -> Result<String, Error> {
        let reviews: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let (how, review) = (PostParams::default(), SelfSubjectReview::default());
        let answer = call("asking for the account's name", TIMEOUT, reviews.create(&how, &review)).await?;
        let user = answer.status.and_then(|status| status.user_info);
        Ok(user.and_then(|user| user.username).unwrap_or_default())
    }
}

/// Returns the right to read objects of a kind, in the form of `kubectl auth can-i`: `get roles.rbac.authorization.k8s.io`.
pub fn right_to_read(kind: &str) -> String {
    match KINDS.iter().find(|(_, known, _)| *known == kind) {
        Some(("", _, plural)) => format!("get {plural}"),
        Some((group, _, plural)) => format!("get {plural}.{group}"),
        None => format!("get {kind}"),
    }
}

fn resource(kind: &str) -> Option<ApiResource> {
    let (group, kind, plural) = KINDS.iter().find(|(_, known, _)| *known == kind)?;
    Some(ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural))
}
