//! Objects that have to exist before the driver pod, and so can't be owned by it from the start. Our label says whose
//! they are until then.

use std::time::Duration;

use kube::{
    Api, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

use super::{
    Cluster, Error,
    create::{TIMEOUT, owner_reference},
    error::call,
    labels,
};
use crate::{spark::Object, submission::SubmissionId};

/// Reading and deleting are quick; no webhook is asked.
const SHORT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Creates an object that the pod will need. One that carries this submission's id counts as created.
    ///
    /// # Errors
    /// [`Error::Refused`] if an object of that name belongs to something else.
    pub async fn create_before_pod(&self, namespace: &str, object: &Object, id: &SubmissionId) -> Result<(), Error> {
        let (api, mut dynamic) = self.dynamic(namespace, object)?;
        dynamic.metadata.labels.get_or_insert_default().insert(labels::SUBMISSION_ID.to_owned(), id.to_string());
        let subject = subject(namespace, &dynamic);
        let action = format!("creating the {subject}");
        match call(action.clone(), TIMEOUT, api.create(&PostParams::default(), &dynamic)).await {
            Err(Error::AlreadyExists { message, .. }) => match ours(&api, &subject, &dynamic, id).await? {
                Some(_) => Ok(()),
                None => {
                    let message = format!("{message}, and it belongs to something else");
                    Err(Error::Refused { action, code: 409, reason: "AlreadyExists".to_owned(), message })
                }
            },
            other => other.map(drop),
        }
    }

    /// Hands such an object to the pod that exists now: it goes when the pod goes.
    pub async fn give_to_pod(&self, namespace: &str, object: &Object, pod: &str, uid: &str) -> Result<(), Error> {
        let (api, dynamic) = self.dynamic(namespace, object)?;
        let patch = json!({ "metadata": { "ownerReferences": [owner_reference(pod, uid)] } });
        let name = dynamic.metadata.name.clone().unwrap_or_default();
        let action = format!("handing the {} to the driver pod {pod}", subject(namespace, &dynamic));
        call(action, TIMEOUT, api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))).await.map(drop)
    }

    /// Deletes such an object when there will be no pod. Only one that carries this submission's id is touched.
    pub async fn delete_before_pod(&self, namespace: &str, object: &Object, id: &SubmissionId) -> Result<(), Error> {
        let (api, dynamic) = self.dynamic(namespace, object)?;
        let subject = subject(namespace, &dynamic);
        let Some(there) = ours(&api, &subject, &dynamic, id).await? else { return Ok(()) };
        let only = Preconditions { uid: there.metadata.uid.clone(), resource_version: None };
        let how = DeleteParams { preconditions: Some(only), ..DeleteParams::background() };
        let name = there.metadata.name.unwrap_or_default();
        match call(format!("deleting the {subject}"), SHORT, api.delete(&name, &how)).await {
            Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn dynamic(&self, namespace: &str, object: &Object) -> Result<(Api<DynamicObject>, DynamicObject), Error> {
        let (resource, json) = match object {
            Object::Service(service) => erase(service),
            Object::NetworkPolicy(policy) => erase(policy),
            Object::Secret(secret) => erase(secret),
            Object::ConfigMap(map) => erase(map),
            Object::PersistentVolumeClaim(claim) => erase(claim),
            Object::PodGroup(group) => erase(group),
        };
        let dynamic = json.and_then(serde_json::from_value).map_err(|error| Error::Refused {
            action: format!("writing a {}", resource.kind),
            code: 400,
            reason: "BadRequest".to_owned(),
            message: error.to_string(),
        })?;
        Ok((Api::namespaced_with(self.client.clone(), namespace, &resource), dynamic))
    }
}

fn erase<K>(object: &K) -> (ApiResource, serde_json::Result<serde_json::Value>)
where
    K: Resource<DynamicType = ()> + serde::Serialize,
{
    (ApiResource::erase::<K>(&()), serde_json::to_value(object))
}

/// The object of that name, if it carries the submission's id.
async fn ours(
    api: &Api<DynamicObject>,
    subject: &str,
    object: &DynamicObject,
    id: &SubmissionId,
) -> Result<Option<DynamicObject>, Error> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let there = call(format!("reading the {subject}"), SHORT, api.get_opt(name)).await?;
    Ok(there.filter(|there| {
        there.metadata.labels.as_ref().and_then(|labels| labels.get(labels::SUBMISSION_ID)).map(String::as_str)
            == Some(id.as_str())
    }))
}

fn subject(namespace: &str, object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map_or("", |types| &types.kind);
    format!("{kind} {namespace}/{}", object.metadata.name.as_deref().unwrap_or_default())
}
