//! An in-memory API server, a node, and a Spark whose `spark-submit` is a shell script.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::api::{LogParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sparkgate::sandbox::apiserver;
use sparkgate::sandbox::node::{self, NodeConfig, Spark};
use sparkgate_testing::kube_apiserver::{ADMIN, KubeApiserver};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::server::client;

/// Longer than anything here takes on a busy machine, including a Spark job.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs its last argument; the node generated the others from the pod.
const SUBMIT: &str = "#!/bin/bash\nset -e\neval \"${@: -1}\"\n";

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) spark: Option<Spark>,
    node: Option<(JoinHandle<anyhow::Result<()>>, CancellationToken)>,
    apiserver: CancellationToken,
}

impl World {
    /// Starts a node with the shell script as its Spark.
    pub(crate) async fn new() -> Self {
        let mut world = Self::without_spark().await;
        let home = world.dir.path().join("spark");
        let submit = home.join("bin/spark-submit");
        std::fs::create_dir_all(home.join("bin")).unwrap();
        std::fs::write(&submit, SUBMIT).unwrap();
        std::fs::set_permissions(&submit, std::fs::Permissions::from_mode(0o755)).unwrap();
        world.spark = Spark::find(Some(&home)).await.unwrap();
        world
    }

    /// Starts the node on a real kube-apiserver, which other tests can't share: the node runs all pods.
    pub(crate) async fn real(server: &KubeApiserver) -> Self {
        let mut world = Self::new().await;
        let kubeconfig = kube::config::Kubeconfig::read_from(server.file(ADMIN)).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        world.client = server.admin().await;
        world.url = config.cluster_url.to_string();
        world
    }

    pub(crate) async fn without_spark() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let apiserver = CancellationToken::new();
        tokio::spawn(apiserver::serve(listener, None, apiserver.clone()));
        Self { client: client(&url), url, dir: tempfile::tempdir().unwrap(), spark: None, node: None, apiserver }
    }

    /// Starts the node, or its successor on the same directory.
    pub(crate) fn start_node(&mut self) {
        let config = NodeConfig {
            client: self.client.clone(),
            api_url: self.url.clone(),
            token: None,
            ca_file: None,
            name: "sandbox".to_owned(),
            spark: self.spark.clone(),
            dir: self.state(),
        };
        let shutdown = CancellationToken::new();
        self.node = Some((tokio::spawn(node::run(config, shutdown.clone())), shutdown));
    }

    /// Shuts the node down gracefully.
    pub(crate) async fn stop_node(&mut self) {
        let (task, shutdown) = self.node.take().unwrap();
        shutdown.cancel();
        task.await.unwrap().unwrap();
    }

    /// Ends the node between two instructions.
    pub(crate) async fn crash_node(&mut self) {
        let (task, _shutdown) = self.node.take().unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: DeserializeOwned + serde::Serialize + Clone + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        Api::namespaced(self.client.clone(), "default").create(&PostParams::default(), &object).await.unwrap()
    }

    /// Waits until the pod satisfies the condition; returns the pod.
    pub(crate) async fn wait(&self, name: &str, what: &str, wanted: impl Fn(&Pod) -> bool) -> Pod {
        let condition = |pod: Option<&Pod>| pod.is_some_and(&wanted);
        match tokio::time::timeout(LIMIT, await_condition(self.pods(), name, condition)).await {
            Ok(pod) => pod.unwrap().unwrap(),
            Err(_) => {
                let pod = self.pods().get_opt(name).await.unwrap().and_then(|pod| pod.status);
                panic!("{name} is not {what}: {}", serde_json::to_string_pretty(&pod).unwrap());
            }
        }
    }

    pub(crate) async fn wait_phase(&self, name: &str, phase: &str) -> Pod {
        self.wait(name, phase, |pod| self::phase(pod) == phase).await
    }

    pub(crate) async fn wait_gone(&self, pod: &Pod) {
        let uid = pod.metadata.uid.as_deref().unwrap();
        let name = pod.metadata.name.as_deref().unwrap();
        let gone = await_condition(self.pods(), name, conditions::is_deleted(uid));
        tokio::time::timeout(LIMIT, gone).await.expect("the pod's object is deleted").unwrap();
    }

    pub(crate) async fn log(&self, name: &str) -> String {
        self.pods().logs(name, &LogParams::default()).await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some((task, _)) = self.node.take() {
            task.abort();
        }
        self.apiserver.cancel();
    }
}

/// Returns a driver pod whose job is a shell command.
pub(crate) fn job(name: &str, command: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"spark-role": "driver"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "spark-kubernetes-driver",
                "image": "spark",
                "args": ["driver", command],
            }],
        },
    })
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Returns the terminated state of the pod's only container.
pub(crate) fn end(pod: &Pod) -> ContainerStateTerminated {
    let statuses = pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap();
    statuses[0].state.as_ref().unwrap().terminated.clone().unwrap()
}

/// Returns the reason and message of the container's waiting state.
pub(crate) fn waiting(pod: &Pod) -> Option<(String, String)> {
    let waiting = pod.status.as_ref()?.container_statuses.as_ref()?.first()?.state.as_ref()?.waiting.clone()?;
    Some((waiting.reason?, waiting.message.unwrap_or_default()))
}

/// Polls until the condition holds.
pub(crate) async fn poll(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + LIMIT;
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until no process is left whose id the job wrote to the file.
pub(crate) async fn processes_end(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let ids: Vec<u32> = text.split_whitespace().map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{text}");
    poll("the processes end", async || !ids.iter().any(|id| is_running(*id))).await;
}

/// Returns whether the process runs. A zombie, which only waits for its parent, has ended.
fn is_running(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
