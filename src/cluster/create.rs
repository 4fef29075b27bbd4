//! Creating a driver's objects. Objects are created, never applied: an apply could revive a driver that has ended.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::{Cluster, Error, part::Part};

/// Admission webhooks have ten seconds by default.
pub(super) const TIMEOUT: Duration = Duration::from_secs(12);

impl Cluster {
    /// Creates the driver pod; answers its uid.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if a pod of that name exists: [`Cluster::find_driver`] tells whose it is.
    pub async fn create_pod(&self, namespace: &str, pod: &Value) -> Result<String, Error> {
        let part = Part::new(namespace, pod)?;
        let created = part.post(self, format!("creating the driver pod {}", part.place()), pod).await?;
        Ok(created.metadata.uid)
    }

    /// Creates one object beside the pod, owned by it. An object of that name that this pod owns already counts as
    /// created, so that a launch can be repeated.
    ///
    /// # Errors
    /// [`Error::Refused`] if an object of that name belongs to something else.
    pub async fn create_owned(&self, namespace: &str, object: &Value, pod: &str, uid: &str) -> Result<(), Error> {
        let mut owned = object.clone();
        owned["metadata"]["ownerReferences"] = json!([owner_reference(pod, uid)]);
        self.create(namespace, &owned, |there| is_owned_by(there, uid)).await
    }

    /// Creates an object. One of its name that is ours counts as created, so that a launch can be repeated.
    ///
    /// # Errors
    /// [`Error::Refused`] if an object of that name belongs to something else.
    pub(super) async fn create(
        &self,
        namespace: &str,
        object: &Value,
        is_ours: impl Fn(&ObjectMeta) -> bool,
    ) -> Result<(), Error> {
        let part = Part::new(namespace, object)?;
        let action = format!("creating the {}", part.subject());
        match part.post(self, action.clone(), object).await {
            Err(Error::AlreadyExists { message, .. }) => {
                let Some(there) = part.there(self).await? else {
                    return Err(Error::Conflict { action, message: format!("{message}, and then it went") });
                };
                if is_ours(&there) {
                    return Ok(());
                }
                let message = format!("{message}, and it belongs to something else");
                Err(Error::Refused { action, code: 409, reason: "AlreadyExists".to_owned(), message })
            }
            other => other.map(drop),
        }
    }
}

/// The driver pod as the one owner.
pub(super) fn owner_reference(pod: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: pod.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

fn is_owned_by(meta: &ObjectMeta, uid: &str) -> bool {
    meta.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}
