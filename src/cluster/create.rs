//! Creating a driver's objects. Objects are created, never applied: an apply could revive a driver that has ended.

use std::time::Duration;

use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
        networking::v1::NetworkPolicy,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
};

use super::{Cluster, Error, error::call, labels};
use crate::{
    spark::{Object, PodGroup},
    submission::SubmissionId,
};

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
        let (api, mut object) = self.dynamic(namespace, object)?;
        object.metadata.owner_references = Some(vec![owner_reference(pod, uid)]);
        create(&api, namespace, &object, |there| is_owned_by(there, uid)).await
    }

    /// An object with the part of the API that it belongs to.
    pub(super) fn dynamic(
        &self,
        namespace: &str,
        object: &Object,
    ) -> Result<(Api<DynamicObject>, DynamicObject), Error> {
        let resource = match object {
            Object::Service(_) => ApiResource::erase::<Service>(&()),
            Object::NetworkPolicy(_) => ApiResource::erase::<NetworkPolicy>(&()),
            Object::Secret(_) => ApiResource::erase::<Secret>(&()),
            Object::ConfigMap(_) => ApiResource::erase::<ConfigMap>(&()),
            Object::PersistentVolumeClaim(_) => ApiResource::erase::<PersistentVolumeClaim>(&()),
            Object::PodGroup(_) => ApiResource::erase::<PodGroup>(&()),
        };
        let dynamic = serde_json::to_value(object).and_then(serde_json::from_value);
        let dynamic = dynamic.map_err(|error| Error::Refused {
            action: format!("writing a {}", resource.kind),
            code: 400,
            reason: "BadRequest".to_owned(),
            message: error.to_string(),
        })?;
        Ok((Api::namespaced_with(self.client.clone(), namespace, &resource), dynamic))
    }
}

/// Creates an object. One of its name that is ours counts as created, so that a launch can be repeated.
///
/// # Errors
/// [`Error::Refused`] if an object of that name belongs to something else.
pub(super) async fn create(
    api: &Api<DynamicObject>,
    namespace: &str,
    object: &DynamicObject,
    is_ours: impl Fn(&ObjectMeta) -> bool,
) -> Result<(), Error> {
    let subject = subject(namespace, object);
    let action = format!("creating the {subject}");
    match call(action.clone(), TIMEOUT, api.create(&PostParams::default(), object)).await {
        Err(Error::AlreadyExists { message, .. }) => {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let Some(there) = call(format!("reading the {subject}"), TIMEOUT, api.get_opt(name)).await? else {
                return Err(Error::Conflict { action, message: format!("{message}, and then it went") });
            };
            if is_ours(&there.metadata) {
                return Ok(());
            }
            let message = format!("{message}, and it belongs to something else");
            Err(Error::Refused { action, code: 409, reason: "AlreadyExists".to_owned(), message })
        }
        other => other.map(drop),
    }
}

/// What messages call an object.
pub(super) fn subject(namespace: &str, object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map_or("", |types| &types.kind);
    format!("{kind} {namespace}/{}", object.metadata.name.as_deref().unwrap_or_default())
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
