//! Pods that drivers created. Their labels are the driver's choice, and so may not be those that the watch selects by.

use std::{collections::HashSet, time::Duration};

use http::{HeaderValue, header::ACCEPT};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams, Preconditions, Request},
};
use serde::Deserialize;

use super::{
    answer::nothing_of_kubernetes, call::call, cluster::Cluster, error::Error, executor_pod::EXECUTOR, labels,
    manifest_object::TIMEOUT as WRITE,
};

/// Timeout for a list of a whole namespace.
const LIST: Duration = Duration::from_secs(30);
/// The `Accept` header that asks for metadata only; a server that doesn't know that form may send whole objects.
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json");
/// Selects the pods that have not ended: the metadata doesn't say it.
const LIVE: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Drivers whose dependants are looked for, in one namespace.
#[derive(Debug, Clone, Default)]
pub struct Drivers {
    pub uids: HashSet<String>,
    /// Spark's ids of their applications.
    pub applications: HashSet<String>,
}

/// A pod that a driver created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependant {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

/// A pod without most of its fields.
#[derive(Deserialize)]
struct Listed {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    labels: Labels,
    owner_references: Vec<Owner>,
    deletion_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Labels {
    #[serde(rename = "spark-role")]
    role: Option<String>,
    #[serde(rename = "spark-app-selector")]
    application: Option<String>,
}

#[derive(Deserialize)]
struct Owner {
    kind: String,
    uid: String,
}

#[derive(Deserialize)]
struct List {
    /// An answer without them isn't a list; an empty list may have `null`.
    #[serde(deserialize_with = "Option::deserialize")]
    items: Option<Vec<Listed>>,
}

impl Cluster {
    /// Returns the pods of the namespace that these drivers own and that neither have ended nor are being deleted; and the executors
    /// of their applications that no pod owns any more, by the labels by which Spark itself finds them when a driver stops.
    ///
    /// This is one list of the metadata of the live pods of the namespace, from the API server's cache.
    pub async fn dependants(&self, namespace: &str, drivers: &Drivers) -> Result<Vec<Dependant>, Error> {
        let is_owned = |pod: &Metadata| {
            pod.owner_references.iter().any(|owner| owner.kind == "Pod" && drivers.uids.contains(&owner.uid))
        };
        let is_orphan = |pod: &Metadata| {
            let application = pod.labels.application.as_ref();
            let is_executor =
                pod.labels.is_executor() && application.is_some_and(|id| drivers.applications.contains(id));
            is_executor && !pod.owner_references.iter().any(|owner| owner.kind == "Pod")
        };
        let live = self.live_pods(Some(namespace), "").await?;
        let dependants = live.into_iter().filter(|pod| {
            let may_stay = pod.deletion_timestamp.is_some() || drivers.uids.contains(&pod.uid);
            !may_stay && (is_owned(pod) || is_orphan(pod))
        });
        Ok(dependants.map(Dependant::from).collect())
    }

    /// Returns the executors of the watched namespaces that have not ended, and whose owner is no driver that has not ended.
    pub async fn executors_without_driver(&self) -> Result<Vec<Dependant>, Error> {
        let mut live = Vec::new();
        if self.namespaces.is_empty() {
            live = self.live_pods(None, labels::ROLE).await?;
        }
        for namespace in self.namespaces.iter() {
            live.extend(self.live_pods(Some(namespace), labels::ROLE).await?);
        }
        let uids: HashSet<_> = live.iter().map(|pod| pod.uid.clone()).collect();
        let is_left = |pod: &Metadata| {
            let is_owned = pod.owner_references.iter().any(|owner| owner.kind == "Pod" && uids.contains(&owner.uid));
            pod.labels.is_executor() && !is_owned && pod.deletion_timestamp.is_none()
        };
        Ok(live.into_iter().filter(is_left).map(Dependant::from).collect())
    }

    async fn live_pods(&self, namespace: Option<&str>, selector: &str) -> Result<Vec<Metadata>, Error> {
        let action = format!("listing the live pods of {}", namespace.unwrap_or("all namespaces"));
        let how = ListParams::default().labels(selector).fields(LIVE).match_any();
        let text = call(action.clone(), LIST, async {
            let path = Pod::url_path(&(), namespace);
            let mut request = Request::new(path).list(&how).map_err(kube::Error::BuildRequest)?;
            request.headers_mut().insert(ACCEPT, METADATA);
            self.client.request_text(request).await
        });
        let text = text.await?;
        let list: List = serde_json::from_str(&text).map_err(|_| nothing_of_kubernetes(action))?;
        Ok(list.items.into_iter().flatten().map(|pod| pod.metadata).collect())
    }

    /// Deletes exactly this pod, with the grace period of its spec. A pod that is already gone counts as deleted.
    pub async fn delete_dependant(&self, pod: &Dependant) -> Result<(), Error> {
        let Dependant { namespace, name, uid } = pod;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let only = Preconditions { uid: Some(uid.clone()), resource_version: None };
        let how = DeleteParams { preconditions: Some(only), ..DeleteParams::background() };
        match call(format!("deleting the pod {namespace}/{name}"), WRITE, pods.delete(name, &how)).await {
            // A conflict means that the name belongs to another pod now.
            Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

impl Labels {
    fn is_executor(&self) -> bool {
        self.role.as_deref() == Some(EXECUTOR)
    }
}

impl From<Metadata> for Dependant {
    fn from(Metadata { namespace, name, uid, .. }: Metadata) -> Self {
        Self { namespace, name, uid }
    }
}
