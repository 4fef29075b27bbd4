//! Creates a driver's objects. Objects are created, never applied: an apply could recreate a driver that has ended.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DynamicObject, PostParams};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    answer::nothing_of_kubernetes,
    call::call,
    cluster::Cluster,
    error::Error,
    manifest_object::{Answer, ManifestObject, Members, TIMEOUT, unreadable},
    observe::observation_of,
    slim_pod::SlimPod,
};
use sparkgate_submission::{PodObservation, SubmissionId};

impl Cluster {
    /// Creates the driver pod of an attempt and returns it as it exists: mutating webhooks may have changed it.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if a pod of that name exists: [`Cluster::find_driver`] returns which attempt it belongs to.
    pub async fn create_pod(
        &self,
        namespace: &str,
        pod: &RawValue,
        (id, attempt): (&SubmissionId, i32),
    ) -> Result<PodObservation, Error> {
        let part = ManifestObject::new(namespace, pod)?;
        let action = format!("creating the driver pod {}", part.place());
        let answer = part.post(self, action.clone(), pod, Answer::Whole).await?;
        let created = serde_json::from_str::<SlimPod>(&answer).ok();
        let observed =
            created.and_then(|pod| observation_of(&pod, (id.clone(), attempt), self.installation.as_deref()));
        // An answer without a uid isn't the API server's, and then the pod may not exist.
        observed.ok_or_else(|| nothing_of_kubernetes(action))
    }

    /// Returns the refusal if the quotas of the namespace have no room for a driver pod now; nothing is created. Any other answer isn't
    /// judged here: the creation gets it, too.
    pub async fn lack_of_room(&self, namespace: &str, pod: &RawValue) -> Result<Option<Error>, Error> {
        let part = ManifestObject::new(namespace, pod)?;
        let object: DynamicObject = serde_json::from_str(pod.get()).map_err(|error| unreadable("pod", &error))?;
        let how = PostParams { dry_run: true, ..PostParams::default() };
        let action = format!("looking for room for the driver pod {}", part.place());
        let answer = call(action, TIMEOUT, part.api(self).create(&how, &object)).await;
        Ok(answer.err().filter(|error| matches!(error, Error::QuotaExceeded { .. })))
    }

    /// Creates one object that the pod owns. An object of that name that this pod already owns counts as created, so that a
    /// launch can be repeated.
    ///
    /// Secrets are not read, so that the account needs no right to: a Secret of that name counts as created if `is_repeated`,
    /// that is, if an earlier try created the pod, as its uid or its identity proves. Before that, nothing that it owns is
    /// created; and once the pod exists, an owner reference proves no more, since the uid in it can be read from the pod. (The
    /// earlier try may be unknown to a database that was restored from a backup.)
    ///
    /// # Errors
    /// [`Error::Refused`] if an object of that name belongs to something else.
    pub async fn create_owned(
        &self,
        namespace: &str,
        object: &RawValue,
        (pod, uid): (&str, &str),
        is_repeated: bool,
    ) -> Result<(), Error> {
        let (part, members, metadata) = ManifestObject::with_members(namespace, object)?;
        let owned =
            owned(members, metadata, &owner_reference(pod, uid)).map_err(|error| unreadable("object", &error))?;
        if !part.is_secret() {
            return self.create(&part, &owned, |there| is_owned_by(there, uid)).await;
        }
        let action = format!("creating the {}", part.subject());
        match part.post(self, action.clone(), &owned, Answer::Metadata).await {
            Err(Error::AlreadyExists { .. }) if is_repeated => Ok(()),
            Err(Error::AlreadyExists { message, .. }) => Err(foreign(action, &message)),
            other => other.map(drop),
        }
    }

    /// Creates an object. An existing object of its name that is ours counts as created, so that a launch can be repeated. The API server
    /// asks webhooks, quotas and policies before it says that an object exists, so any refusal may be that of an object that exists.
    ///
    /// # Errors
    /// [`Error::Refused`] if an object of that name belongs to something else.
    pub(super) async fn create(
        &self,
        part: &ManifestObject<'_>,
        object: &RawValue,
        is_ours: impl Fn(&ObjectMeta) -> bool,
    ) -> Result<(), Error> {
        let action = format!("creating the {}", part.subject());
        match part.post(self, action.clone(), object, Answer::Metadata).await {
            Err(Error::AlreadyExists { message, .. }) => {
                let Some(there) = part.there(self).await? else {
                    return Err(Error::Conflict { action, message: format!("{message}, and was deleted since then") });
                };
                if is_ours(&there) {
                    return Ok(());
                }
                Err(foreign(action, &message))
            }
            Err(refusal) if refusal.is_refusal() => match part.there(self).await {
                Ok(Some(there)) if is_ours(&there) => Ok(()),
                _ => Err(refusal),
            },
            other => other.map(drop),
        }
    }
}

/// Refuses an object whose name is taken.
fn foreign(action: String, message: &str) -> Error {
    let message = format!("{message}, and it belongs to something else");
    Error::Refused { action, code: 409, reason: "AlreadyExists".to_owned(), message }
}

/// Returns an object with its owner added; the rest of the object isn't parsed.
fn owned(members: Members<'_>, metadata: Members<'_>, owner: &OwnerReference) -> serde_json::Result<Box<RawValue>> {
    // Shortens the lifetimes to that of the values which are inserted below.
    let (mut members, mut metadata): (Members<'_>, Members<'_>) = (members, metadata);
    let owners = to_raw_value(&[owner])?;
    metadata.insert("ownerReferences".into(), &owners);
    let metadata = to_raw_value(&metadata)?;
    members.insert("metadata".into(), &metadata);
    to_raw_value(&members)
}

/// Returns a reference to the driver pod as the only owner.
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
