//! A namespace on a real kube-apiserver, with the actions of its scheduler, kubelet and users.

use http::Request;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Pod},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    client::Body as RequestBody,
};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use sparkgate::{
    cluster::{Cluster, WatchPace, labels},
    submission::{Installation, Phase, SubmissionId},
};
use sparkgate_testing::{kube_apiserver::KubeApiserver, rights};

use crate::cluster::{Body, Pod as Model};

pub(super) struct Kubernetes {
    /// The administrator's client.
    client: Client,
    pub(super) namespace: String,
    pub(super) cluster: Cluster,
}

impl Kubernetes {
    pub(super) async fn start(namespace: &str) -> Self {
        let server = KubeApiserver::start().await;
        server.create_namespace(namespace).await;
        let admin = server.admin().await;
        as_podgroups(&admin, &server.gateway().await, namespace).await;
        let cluster = Cluster::new(server.gateway().await, &[namespace.to_owned()])
            .for_installation(installation())
            .with_pace(WatchPace::default());
        Self { client: admin, namespace: namespace.to_owned(), cluster }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates a pod as other users do, with the labels of a submission or without.
    pub(super) async fn foreign(&self, name: &str, labelled_as: Option<&SubmissionId>) -> Option<String> {
        let labels = labelled_as.map_or_else(|| json!({}), labels);
        let pod = serde_json::from_value(pod(name, labels, false)).unwrap();
        let made = self.pods().create(&PostParams::default(), &pod).await;
        made.ok().and_then(|made| made.metadata.uid)
    }

    pub(super) async fn bind(&self, name: &str) {
        let path = format!("/api/v1/namespaces/{}/pods/{name}/binding", self.namespace);
        let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "somewhere"}});
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(RequestBody::from(binding.to_string().into_bytes())).unwrap();
        assert!(self.client.send(request).await.unwrap().status().is_success());
    }

    /// Reports the status of the model's pod.
    pub(super) async fn report(&self, name: &str, pod: &Model) {
        let phase = match pod.phase {
            Phase::Running => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
            Phase::Pending | Phase::Unknown => "Pending",
        };
        let state = match pod.body {
            Body::Absent | Body::Unscheduled => None,
            Body::Stuck => Some(json!({"waiting": {"reason": "ImagePullBackOff"}})),
            Body::Running => Some(json!({"running": {}})),
            Body::Exited(code) => Some(json!({"terminated": {"exitCode": code}})),
        };
        let statuses = state.map(|state| {
            json!([{"name": "spark", "image": "spark", "imageID": "", "ready": false, "restartCount": 0,
                "state": state}])
        });
        let status = json!({"status": {"phase": phase, "reason": pod.reason, "containerStatuses": statuses}});
        self.pods().patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Removes one of our labels, or the identity.
    pub(super) async fn take(&self, name: &str, field: &str, key: &str) {
        let without = json!({"metadata": {field: {key: null}}});
        self.pods().patch(name, &PatchParams::default(), &Patch::Merge(without)).await.unwrap();
    }

    /// Overwrites the labels by those of a submission.
    pub(super) async fn relabel(&self, name: &str, submission: &SubmissionId) {
        self.annotate(name, json!({"labels": labels(submission)})).await;
    }

    /// Overwrites the identity by that of a submission's driver pod.
    pub(super) async fn sign(&self, name: &str, submission: &SubmissionId, pod: &str) {
        let identity = installation().identity(submission, 1, &self.namespace, pod);
        self.annotate(name, json!({"annotations": {labels::IDENTITY: identity}})).await;
    }

    async fn annotate(&self, name: &str, metadata: Value) {
        let patch = Patch::Merge(json!({"metadata": metadata}));
        self.pods().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Deletes the pod of this uid with this grace period, as users and kubelets do.
    pub(super) async fn delete(&self, name: &str, uid: &str, grace: u32) -> bool {
        let only = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let how = DeleteParams { preconditions: Some(only), ..DeleteParams::default() }.grace_period(grace);
        self.pods().delete(name, &how).await.is_ok()
    }

    /// Returns the uid of the owner of a `ConfigMap`, if there is one of that name.
    pub(super) async fn owner(&self, name: &str) -> Option<Option<String>> {
        let all: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let object = all.get_opt(name).await.unwrap()?;
        Some(object.metadata.owner_references.and_then(|owners| Some(owners.first()?.uid.clone())))
    }
}

/// Gives the gateway's account the rights on `ConfigMap`s that it has on Volcano's `PodGroup`s: `ConfigMap`s replace
/// these here.
async fn as_podgroups(admin: &Client, gateway: &Client, namespace: &str) {
    let name = json!({"name": "podgroups"});
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "delete"]}]);
    let role: Role = serde_json::from_value(json!({"metadata": name, "rules": rules})).unwrap();
    let api = "rbac.authorization.k8s.io";
    let binding: RoleBinding = serde_json::from_value(json!({"metadata": name,
        "roleRef": {"apiGroup": api, "kind": "Role", "name": "podgroups"},
        "subjects": [{"apiGroup": api, "kind": "User", "name": rights::USER}]}))
    .unwrap();
    Api::namespaced(admin.clone(), namespace).create(&PostParams::default(), &role).await.unwrap();
    Api::namespaced(admin.clone(), namespace).create(&PostParams::default(), &binding).await.unwrap();
    let all: Api<ConfigMap> = Api::namespaced(gateway.clone(), namespace);
    let may = async || match all.patch("none", &PatchParams::default(), &Patch::Merge(json!({}))).await {
        Err(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    };
    while !may().await {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Returns a driver pod of a submission.
pub(super) fn driver(namespace: &str, name: &str, submission: &SubmissionId, finalizer: bool) -> Box<RawValue> {
    let mut pod = pod(name, labels(submission), finalizer);
    let identity = installation().identity(submission, 1, namespace, name);
    pod["metadata"]["annotations"] = json!({ labels::IDENTITY: identity });
    to_raw_value(&pod).unwrap()
}

fn labels(submission: &SubmissionId) -> Value {
    json!({"spark-role": "driver", labels::SUBMISSION_ID: submission.as_str(), labels::ATTEMPT: "1",
        labels::INSTANCE: installation().id.to_string()})
}

fn installation() -> Installation {
    Installation::new(uuid::Uuid::nil(), vec![7; 32])
}

fn pod(name: &str, labels: Value, finalizer: bool) -> Value {
    let finalizers: &[&str] = if finalizer { &[labels::FINALIZER] } else { &[] };
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "finalizers": finalizers},
        "spec": {"containers": [{"name": "spark", "image": "spark"}]}})
}

/// Returns an object that is created before or after a pod.
pub(super) fn config_map(name: &str, submission: &str) -> Box<RawValue> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {labels::SUBMISSION_ID: submission}}});
    to_raw_value(&object).unwrap()
}
