//! Objects that have to exist before the driver pod, and so can't be owned by it from the start. Until the pod owns them, our
//! label names the submission that they belong to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{json, value::RawValue};

use super::{
    call::call,
    cluster::Cluster,
    create::owner_reference,
    error::Error,
    labels,
    manifest_object::{ManifestObject, TIMEOUT},
    pods::is_of_another_uid,
};
use sparkgate_submission::SubmissionId;

impl Cluster {
    /// Creates an object that the pod will need. An existing object that carries this submission's id counts as created.
    ///
    /// # Errors
    /// [`Error::Refused`] if an object of that name belongs to something else.
    pub async fn create_before_pod(&self, namespace: &str, object: &RawValue, id: &SubmissionId) -> Result<(), Error> {
        self.create(&ManifestObject::new(namespace, object)?, object, |there| is_of(there, id)).await
    }

    /// Makes the pod, which exists now, the owner of such an object: the object is then deleted with the pod.
    pub async fn give_to_pod(&self, namespace: &str, object: &RawValue, pod: &str, uid: &str) -> Result<(), Error> {
        let object = ManifestObject::new(namespace, object)?;
        let patch = json!({ "metadata": { "ownerReferences": [owner_reference(pod, uid)] } });
        let action = format!("making the driver pod {pod} the owner of the {}", object.subject());
        let api = object.api(self);
        let patched =
            call(action, TIMEOUT, api.patch(&object.name, &PatchParams::default(), &Patch::Merge(patch))).await;
        object.served(self, patched).await.map(drop)
    }

    /// Deletes such an object when there will be no pod. Only an object that carries this submission's id is touched.
    pub async fn delete_before_pod(&self, namespace: &str, object: &RawValue, id: &SubmissionId) -> Result<(), Error> {
        let object = ManifestObject::new(namespace, object)?;
        let Some(there) = object.there(self).await?.filter(|there| is_of(there, id)) else { return Ok(()) };
        let only = Preconditions { uid: there.uid, resource_version: None };
        let how = DeleteParams { preconditions: Some(only), ..DeleteParams::background() };
        let action = format!("deleting the {}", object.subject());
        match call(action, TIMEOUT, object.api(self).delete(&object.name, &how)).await {
            Ok(_) => Ok(()),
            Err(Error::NotFound { name, .. }) if name == object.name => Ok(()),
            Err(Error::Conflict { message, .. }) if is_of_another_uid(&message) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

/// Returns whether an object carries the submission's id.
fn is_of(there: &ObjectMeta, id: &SubmissionId) -> bool {
    there.labels.as_ref().and_then(|labels| labels.get(labels::SUBMISSION_ID)).map(String::as_str) == Some(id.as_str())
}
