//! One API server behind the proxy, a namespace in it, and functions that change pods there.

use std::net::SocketAddr;
use std::time::Duration;

use crate::server::Server;
use crate::watch::watching::Watching;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use sparkgate::cluster::{Cluster, ClusterSettings, WatchPace};
use sparkgate_testing::{
    fault_proxy::FaultProxy,
    kube_apiserver::{GATEWAY, GATEWAY_EVERYWHERE, KubeApiserver},
    kubeconfig,
};

pub(crate) struct World {
    /// The administrator's client, which doesn't use the proxy.
    client: Client,
    pub(crate) namespace: String,
    pub(crate) proxy: FaultProxy,
    server: Server,
    kubeconfig: tempfile::NamedTempFile,
}

impl World {
    pub(crate) async fn sandbox(name: &str) -> Self {
        let server = Server::sandbox().await;
        let Server::Sandbox(_, address) = server else { unreachable!("it is one of the sandbox") };
        let client = server.admin().await;
        let object: Namespace = serde_json::from_value(json!({"metadata": {"name": name.replace('_', "-")}})).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        Self::new(name, client, server, &kubeconfig::without_tls(address), address).await
    }

    pub(crate) async fn kube_apiserver(name: &str) -> Self {
        Self::real(name, GATEWAY).await
    }

    /// The same, with an account that has rights in all namespaces.
    pub(crate) async fn everywhere(name: &str) -> Self {
        KubeApiserver::start().await.gateway_everywhere().await;
        Self::real(name, GATEWAY_EVERYWHERE).await
    }

    async fn real(name: &str, kubeconfig: &str) -> Self {
        let server = KubeApiserver::start().await;
        server.create_namespace(&name.replace('_', "-")).await;
        let kubeconfig = std::fs::read_to_string(server.file(kubeconfig)).unwrap();
        Self::new(name, server.admin().await, Server::Real(server), &kubeconfig, server.address()).await
    }

    async fn new(name: &str, client: Client, server: Server, kubeconfig: &str, address: SocketAddr) -> Self {
        let proxy = FaultProxy::start(address).await;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), kubeconfig.replace(&address.to_string(), &proxy.address().to_string())).unwrap();
        let namespace = name.replace('_', "-");
        Self { client, namespace, proxy, server, kubeconfig: file }
    }

    /// Returns the cluster as the gateway connects to it, through the proxy.
    pub(crate) async fn cluster(&self) -> Cluster {
        self.cluster_of(std::slice::from_ref(&self.namespace)).await
    }

    pub(crate) async fn cluster_of(&self, namespaces: &[String]) -> Cluster {
        let settings = ClusterSettings {
            kubeconfig: Some(self.kubeconfig.path().to_owned()),
            namespaces: namespaces.to_vec(),
            ..ClusterSettings::default()
        };
        Cluster::connect(&settings).await.unwrap()
    }

    /// Returns the same over HTTP/1.1.
    pub(crate) async fn cluster_http1(&self) -> Cluster {
        Cluster::new(client(&self.kubeconfig).await, std::slice::from_ref(&self.namespace))
    }

    /// Starts a watch with the short intervals of the tests.
    pub(crate) async fn watch(&self, resume: Option<&str>) -> Watching {
        self.watch_on(self.cluster().await.with_pace(brisk()), resume)
    }

    pub(crate) fn watch_on(&self, cluster: Cluster, resume: Option<&str>) -> Watching {
        Watching::new(cluster.watch(Some(self.namespace.clone()), resume.map(str::to_owned)))
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn create(&self, name: &str, labels: Value) -> String {
        self.create_owned(name, labels, json!([])).await
    }

    async fn create_owned(&self, name: &str, labels: Value, owners: Value) -> String {
        let pod = json!({"metadata": {"name": name, "labels": labels, "ownerReferences": owners},
            "spec": {"nodeName": "somewhere", "containers": [{"name": "spark", "image": "spark"}]}});
        let made = self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        made.metadata.uid.unwrap()
    }

    /// Creates a driver pod `driver-{number}`; returns its uid.
    pub(crate) async fn driver(&self, number: u32) -> String {
        let labels = json!({"spark-role": "driver", "sparkgate.dev/submission-id": submission(number),
            "sparkgate.dev/attempt": "1"});
        self.create(&submission(number), labels).await
    }

    /// Creates an executor pod `exec-{number}-{id}`.
    pub(crate) async fn executor(&self, number: u32, id: &str) {
        let labels = json!({"spark-role": "executor", "spark-exec-id": id, "sparkgate.dev/attempt": "1",
            "sparkgate.dev/submission-id": submission(number)});
        // An object whose owner doesn't exist is garbage-collected.
        let driver = match self.pods().get_opt(&submission(number)).await.unwrap() {
            Some(driver) => driver.metadata.uid.unwrap(),
            None => self.create(&format!("unlabelled-{number}-{}", id.to_lowercase()), json!({})).await,
        };
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": driver}]);
        self.create_owned(&format!("exec-{number}-{}", id.to_lowercase()), labels, owner).await;
    }

    /// Reports as a kubelet that the container has ended.
    pub(crate) async fn end(&self, pod: &str, code: i32) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let status = json!({"status": {"phase": phase, "containerStatuses": [{"name": "spark", "image": "spark",
            "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": code}}}]}});
        self.pods().patch_status(pod, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Deletes the pod at once.
    pub(crate) async fn remove(&self, pod: &str) {
        match self.pods().delete(pod, &DeleteParams::default().grace_period(0)).await {
            // A server that writes to a slow etcd may do so twice, and tell of the second time.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            answer => drop(answer.unwrap()),
        }
    }

    /// Compacts the server's history up to now.
    pub(crate) async fn compact(&self) {
        let version = self.pods().list(&ListParams::default()).await.unwrap().metadata.resource_version;
        self.server.compact(&version.unwrap()).await;
    }
}

pub(crate) fn submission(number: u32) -> String {
    format!("driver-{number}")
}

/// Returns short intervals, so that the tests needn't wait long.
pub(crate) fn brisk() -> WatchPace {
    WatchPace {
        renewal: 2,
        grace: Duration::from_millis(500),
        settling: Duration::from_millis(500),
        longest_pause: Duration::from_millis(500),
        ..WatchPace::default()
    }
}

async fn client(kubeconfig: &tempfile::NamedTempFile) -> Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig.path()).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
