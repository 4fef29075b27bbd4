//! Events about a pod, with the messages of a scheduler and a kubelet, which tell a user why the pod waits.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};

const CALL: Duration = Duration::from_secs(5);

/// Writes events about one pod. The pod owns them, so that they are deleted with it: nothing here deletes them after an hour.
pub(super) struct Events {
    api: Api<Event>,
    pod: ObjectReference,
    node: String,
}

impl Events {
    pub(super) fn new(client: Client, node: &str, namespace: &str, name: &str, uid: &str) -> Self {
        let pod = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            ..Default::default()
        };
        Self { api: Api::namespaced(client, namespace), pod, node: node.to_owned() }
    }

    /// Writes an event of the type `Normal`.
    pub(super) fn normal(&self, reason: &str, message: String) {
        self.write("Normal", reason, message);
    }

    /// Writes an event of the type `Warning`.
    pub(super) fn warning(&self, reason: &str, message: String) {
        self.write("Warning", reason, message);
    }

    /// Writes an event in the background: the pod doesn't wait for it, and an event may get lost.
    fn write(&self, kind: &str, reason: &str, message: String) {
        let (api, event) = (self.api.clone(), self.event(kind, reason, message));
        tokio::spawn(async move {
            if let Ok(Err(error)) = tokio::time::timeout(CALL, api.create(&PostParams::default(), &event)).await {
                tracing::debug!(%error, "cannot write an event about a pod");
            }
        });
    }

    fn event(&self, kind: &str, reason: &str, message: String) -> Event {
        let (name, uid) = (self.pod.name.clone().unwrap_or_default(), self.pod.uid.clone().unwrap_or_default());
        let owner =
            OwnerReference { api_version: "v1".to_owned(), kind: "Pod".to_owned(), name, uid, ..Default::default() };
        let now = Some(Time(Timestamp::now()));
        Event {
            metadata: ObjectMeta {
                name: Some(format!("pod-{}", uuid::Uuid::new_v4().simple())),
                namespace: self.pod.namespace.clone(),
                owner_references: Some(vec![owner]),
                ..Default::default()
            },
            involved_object: self.pod.clone(),
            type_: Some(kind.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message),
            count: Some(1),
            first_timestamp: now.clone(),
            last_timestamp: now,
            source: Some(EventSource { component: Some("sandbox".to_owned()), host: Some(self.node.clone()) }),
            ..Default::default()
        }
    }
}
