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
use serde_json::Value;

use super::{Cluster, Error, error::call};
use crate::spark::PodGroup;

/// Admission webhooks have ten seconds by default.
pub(super) const TIMEOUT: Duration = Duration::from_secs(12);

impl Cluster {
    /// Creates the driver pod; answers its uid.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if a pod of that name exists: [`Cluster::find_driver`] tells whose it is.
    pub async fn create_pod(&self, namespace: &str, pod: &Value) -> Result<String, Error> {
        let (api, pod) = self.dynamic(namespace, pod)?;
        let action = format!("creating the driver pod {}", place(namespace, &pod));
        let created = call(action, TIMEOUT, api.create(&PostParams::default(), &pod)).await?;
        Ok(created.metadata.uid.unwrap_or_default())
    }

    /// Creates one object beside the pod, owned by it. An object of that name that this pod owns already counts as
    /// created, so that a launch can be repeated.
    ///
    /// # Errors
    /// [`Error::Refused`] if an object of that name belongs to something else.
    pub async fn create_owned(&self, namespace: &str, object: &Value, pod: &str, uid: &str) -> Result<(), Error> {
        let (api, mut object) = self.dynamic(namespace, object)?;
        object.metadata.owner_references = Some(vec![owner_reference(pod, uid)]);
        create(&api, namespace, &object, |there| is_owned_by(there, uid)).await
    }

    /// An object with the part of the API that it belongs to.
    pub(super) fn dynamic(
        &self,
        namespace: &str,
        object: &Value,
    ) -> Result<(Api<DynamicObject>, DynamicObject), Error> {
        let resource = resource(object).ok_or_else(|| unreadable(object, "it is of no kind that a driver has"))?;
        let dynamic = serde_json::from_value(object.clone()).map_err(|error| unreadable(object, &error.to_string()))?;
        Ok((Api::namespaced_with(self.client.clone(), namespace, &resource), dynamic))
    }
}

fn resource(object: &Value) -> Option<ApiResource> {
    Some(match object["kind"].as_str()? {
        "Pod" => ApiResource::erase::<Pod>(&()),
        "Service" => ApiResource::erase::<Service>(&()),
        "NetworkPolicy" => ApiResource::erase::<NetworkPolicy>(&()),
        "Secret" => ApiResource::erase::<Secret>(&()),
        "ConfigMap" => ApiResource::erase::<ConfigMap>(&()),
        "PersistentVolumeClaim" => ApiResource::erase::<PersistentVolumeClaim>(&()),
        "PodGroup" => ApiResource::erase::<PodGroup>(&()),
        _ => return None,
    })
}

fn unreadable(object: &Value, why: &str) -> Error {
    Error::Refused {
        action: format!("reading the kept {}", object["kind"].as_str().unwrap_or("object")),
        code: 400,
        reason: "BadRequest".to_owned(),
        message: why.to_owned(),
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
    format!("{kind} {}", place(namespace, object))
}

fn place(namespace: &str, object: &DynamicObject) -> String {
    format!("{namespace}/{}", object.metadata.name.as_deref().unwrap_or_default())
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
