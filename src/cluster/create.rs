//! Creating a driver's objects. Objects are created, never applied: an apply could revive a driver that has ended.

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{Api, Resource, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};

use super::{Cluster, Error, error::call, labels};
use crate::{spark::Object, submission::SubmissionId};

/// Admission webhooks have ten seconds by default.
pub(super) const TIMEOUT: Duration = Duration::from_secs(12);

impl Cluster {
    /// Creates the driver pod with our labels; answers its uid.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if a pod of that name exists: [`Cluster::find_driver`] tells whose it is.
    pub async fn create_pod(
        &self,
        namespace: &str,
        pod: &Pod,
        id: &SubmissionId,
        attempt: i32,
    ) -> Result<String, Error> {
        let mut pod = pod.clone();
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(labels::SUBMISSION_ID.to_owned(), id.to_string());
        labels.insert(labels::ATTEMPT.to_owned(), attempt.to_string());
        // Spark appends the driver's container after all others.
        let driver = pod.spec.as_ref().and_then(|spec| spec.containers.last()).map(|container| container.name.clone());
        let annotations = pod.metadata.annotations.get_or_insert_default();
        annotations.insert(labels::DRIVER_CONTAINER.to_owned(), driver.unwrap_or_default());
        let name = pod.metadata.name.clone().unwrap_or_default();
        let action = format!("creating the driver pod {namespace}/{name}");
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let created = call(action, TIMEOUT, pods.create(&PostParams::default(), &pod)).await?;
        Ok(created.metadata.uid.unwrap_or_default())
    }

    /// Creates one object beside the pod, owned by it. An object of that name that this pod owns already counts as
    /// created, so that a launch can be repeated.
    ///
    /// # Errors
    /// [`Error::Refused`] if an object of that name belongs to something else.
    pub async fn create_owned(&self, namespace: &str, object: &Object, pod: &str, uid: &str) -> Result<(), Error> {
        let owner = owner_reference(pod, uid);
        match object {
            Object::Service(service) => self.create(namespace, service.clone(), owner).await,
            Object::NetworkPolicy(policy) => self.create(namespace, policy.clone(), owner).await,
            Object::Secret(secret) => self.create(namespace, secret.clone(), owner).await,
            Object::ConfigMap(map) => self.create(namespace, map.clone(), owner).await,
            Object::PersistentVolumeClaim(claim) => self.create(namespace, claim.clone(), owner).await,
            Object::PodGroup(group) => self.create(namespace, group.clone(), owner).await,
        }
    }

    async fn create<K>(&self, namespace: &str, mut object: K, owner: OwnerReference) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug
            + Send
            + Sync,
    {
        let uid = owner.uid.clone();
        object.meta_mut().owner_references = Some(vec![owner]);
        let kind = K::kind(&()).into_owned();
        let name = object.meta().name.clone().unwrap_or_default();
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("creating the {kind} {namespace}/{name}");
        match call(action.clone(), TIMEOUT, api.create(&PostParams::default(), &object)).await {
            Ok(_) => Ok(()),
            Err(Error::AlreadyExists { message, .. }) => {
                let reading = format!("reading the {kind} {namespace}/{name}");
                let Some(there) = call(reading, TIMEOUT, api.get_opt(&name)).await? else {
                    return Err(Error::Conflict { action, message: format!("{message}, and then it went") });
                };
                if is_owned_by(there.meta(), &uid) {
                    return Ok(());
                }
                let message = format!("{message}, and it belongs to something else");
                Err(Error::Refused { action, code: 409, reason: "AlreadyExists".to_owned(), message })
            }
            Err(other) => Err(other),
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
