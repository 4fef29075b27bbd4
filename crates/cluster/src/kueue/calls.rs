//! Calls of Kueue's API.

use chrono::{DateTime, SecondsFormat, Utc};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    api::{Kueue, TIMEOUT},
    placement::Flavor,
    request::WorkloadRequest,
    state::Workload,
};
use crate::{
    answer::nothing_of_kubernetes,
    call::{call, find},
    error::Error,
    manifest_object::{TIMEOUT as WRITE, unreadable},
    pods::is_of_another_uid,
};

/// The name under which the gateway owns the condition that it sets.
const FIELD_MANAGER: &str = "sparkgate";

impl Kueue {
    /// Creates the `Workload` of an attempt, and returns it. One of this attempt that exists already counts as created.
    ///
    /// # Errors
    /// [`Error::Refused`] if one of this name belongs to something else.
    pub async fn create_workload(&self, request: &WorkloadRequest<'_>) -> Result<Workload, Error> {
        let installation = self.installation()?;
        let WorkloadRequest { namespace, name, .. } = request;
        let action = format!("creating the Workload {namespace}/{name}");
        let object: DynamicObject = serde_json::from_value(request.object(self.version, installation))
            .map_err(|error| unreadable("Workload", &error))?;
        let created = call(&action, WRITE, self.workloads(namespace).create(&PostParams::default(), &object)).await;
        let message = match created {
            Ok(object) => {
                return Workload::read(object, installation)?.ok_or_else(|| nothing_of_kubernetes(action));
            }
            Err(Error::AlreadyExists { message, .. }) => message,
            Err(other) => return Err(other),
        };
        let is_of_attempt = |there: &Workload| there.submission == *request.id && there.attempt == request.attempt;
        match self.workload(namespace, name).await? {
            Some(there) if is_of_attempt(&there) => Ok(there),
            _ => {
                let message = format!("{message}, and it belongs to something else");
                Err(Error::Refused { action, code: 409, reason: "AlreadyExists".to_owned(), message })
            }
        }
    }

    /// Returns the `Workload` of this name, if there is one of this installation.
    pub async fn workload(&self, namespace: &str, name: &str) -> Result<Option<Workload>, Error> {
        let action = format!("reading the Workload {namespace}/{name}");
        let found = find(action, TIMEOUT, name, self.workloads(namespace).get(name)).await?;
        found.map_or(Ok(None), |object| Workload::read(object, self.installation()?))
    }

    /// Returns all `Workload`s of this installation in a namespace.
    pub async fn list_workloads(&self, namespace: &str) -> Result<Vec<Workload>, Error> {
        let installation = self.installation()?;
        let how = ListParams::default().labels(&self.cluster.selector);
        let action = format!("listing the Workloads in the namespace {namespace}");
        let found = call(action, WRITE, self.workloads(namespace).list(&how)).await?;
        // One that can't be read, which another client may have written, doesn't hide the others.
        Ok(found.into_iter().filter_map(|object| Workload::read(object, installation).ok().flatten()).collect())
    }

    /// Tells Kueue that the pods run: with `waitForPodsReady`, it evicts a `Workload` whose pods don't in time. Success if it is gone.
    pub async fn set_pods_ready(&self, namespace: &str, workload: &Workload, now: DateTime<Utc>) -> Result<(), Error> {
        let condition = condition("PodsReady", "Started", "The driver and its executors run", now);
        let kind = self.resource("Workload", "workloads");
        // The uid guards against a later Workload of this name.
        let patch = json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": { "name": workload.name, "uid": workload.uid },
            "status": { "conditions": [condition] }
        });
        let action = format!("setting the condition PodsReady of the Workload {namespace}/{}", workload.name);
        let (how, workloads) = (PatchParams::apply(FIELD_MANAGER).force(), self.workloads(namespace));
        match call(action, WRITE, workloads.patch_status(&workload.name, &how, &Patch::Apply(&patch))).await {
            Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Deletes exactly this `Workload`, which gives its quota back. Success if it is gone.
    pub async fn delete_workload(&self, namespace: &str, workload: &Workload) -> Result<(), Error> {
        let only = Preconditions { uid: Some(workload.uid.clone()), resource_version: None };
        let how = DeleteParams { preconditions: Some(only), ..DeleteParams::background() };
        let action = format!("deleting the Workload {namespace}/{}", workload.name);
        match call(action, WRITE, self.workloads(namespace).delete(&workload.name, &how)).await {
            Err(Error::NotFound { name, .. }) if name == workload.name => Ok(()),
            Err(Error::Conflict { message, .. }) if is_of_another_uid(&message) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Returns whether a namespace has this `LocalQueue`.
    ///
    /// # Errors
    /// [`Error::Denied`] if the account may not read it, which launches don't need.
    pub async fn has_local_queue(&self, namespace: &str, name: &str) -> Result<bool, Error> {
        let resource = self.resource("LocalQueue", "localqueues");
        let queues: Api<DynamicObject> = Api::namespaced_with(self.cluster.client.clone(), namespace, &resource);
        let action = format!("reading the LocalQueue {namespace}/{name}");
        Ok(find(action, TIMEOUT, name, queues.get(name)).await?.is_some())
    }

    /// Returns a flavor, if it exists.
    pub async fn flavor(&self, name: &str) -> Result<Option<Flavor>, Error> {
        self.cluster_object("ResourceFlavor", "resourceflavors", name, "spec").await
    }

    /// Returns the value of a priority class, if it exists.
    pub async fn priority(&self, class: &str) -> Result<Option<i32>, Error> {
        self.cluster_object("WorkloadPriorityClass", "workloadpriorityclasses", class, "value").await
    }

    /// Returns a field of an object of the whole cluster. An absent field counts as empty.
    async fn cluster_object<T: DeserializeOwned + Default>(
        &self,
        kind: &str,
        plural: &str,
        name: &str,
        field: &str,
    ) -> Result<Option<T>, Error> {
        let api: Api<DynamicObject> = Api::all_with(self.cluster.client.clone(), &self.resource(kind, plural));
        let action = format!("reading the {kind} {name}");
        let Some(found) = find(action.clone(), TIMEOUT, name, api.get(name)).await? else { return Ok(None) };
        let value = found.data.get(field).cloned().unwrap_or(Value::Null);
        let value: Option<T> =
            serde_json::from_value(value).map_err(|error| Error::Unavailable { action, source: Box::new(error) })?;
        Ok(Some(value.unwrap_or_default()))
    }
}

/// Returns a condition that is true since `now`. One without a time counts as old: Kubernetes' disruption controller resets it at once.
pub(super) fn condition(name: &str, reason: &str, message: &str, now: DateTime<Utc>) -> Value {
    json!({
        "type": name, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": now.to_rfc3339_opts(SecondsFormat::Secs, true)
    })
}
