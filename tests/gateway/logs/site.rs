//! A gateway on a sandbox with a node, whose drivers are shell commands.

use std::{collections::BTreeMap, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use futures::StreamExt;
use kube::{Client, api::DeleteParams};
use serde_json::json;
use sparkgate::{
    files::FileStore,
    sandbox::{
        apiserver,
        node::{self, NodeConfig, Spark},
    },
    service::{Log, LogRequest, LogSource, LogStoreSettings, LogStream, NoLog, Service, Setup},
    submission::{DriverState, SubmissionId},
};
use sparkgate_testing::fault_proxy::FaultProxy;
use sqlx::PgPool;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::world::{World, eventually};

/// A Spark that runs the last argument of its driver as a shell command.
const SUBMIT: &str = "#!/bin/bash\neval \"${@: -1}\"\n";

pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) proxy: FaultProxy,
    dir: TempDir,
    _sandbox: DropGuard,
}

impl Site {
    pub(crate) async fn new(pool: PgPool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("spark");
        std::fs::create_dir_all(home.join("bin")).unwrap();
        std::fs::write(home.join("bin/spark-submit"), SUBMIT).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(home.join("bin/spark-submit"), executable).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sandbox = CancellationToken::new();
        tokio::spawn(apiserver::serve(listener, None, sandbox.clone()));
        let config = NodeConfig {
            client: client(address),
            api_url: format!("http://{address}"),
            token: None,
            ca_file: None,
            name: "sandbox".to_owned(),
            spark: Spark::find(Some(&home)).await.unwrap(),
            dir: dir.path().join("node"),
        };
        tokio::spawn(node::run(config, sandbox.clone()));
        let proxy = FaultProxy::start(address).await;
        let mut world = World::on(pool, client(proxy.address()), "default".to_owned()).await;
        world.admin = client(address);
        world.watch();
        Self { world, proxy, dir, _sandbox: sandbox.drop_guard() }
    }

    /// Stores logs from now on, in [`Self::store_dir`].
    pub(crate) async fn store_logs(&mut self) {
        self.store_logs_up_to(1 << 30).await;
    }

    pub(crate) async fn store_logs_up_to(&mut self, largest: u64) {
        let store = FileStore::open(self.store_dir().to_str().unwrap()).unwrap();
        self.configure(|setup| setup.logs = Some((store, LogStoreSettings { largest }))).await;
    }

    /// Replaces the gateway by one with other settings.
    pub(crate) async fn configure(&mut self, change: impl FnOnce(&mut Setup)) {
        self.world.look_away();
        self.world.configure(change).await;
        self.world.watch();
    }

    pub(crate) fn store_dir(&self) -> PathBuf {
        self.dir.path().join("stored")
    }

    /// Replaces the gateway by another one, as after a crash, on the same store of logs.
    pub(crate) async fn replace_gateway(&mut self) {
        let World { pool, client, admin, namespace, .. } = &self.world;
        let mut world = World::on(pool.clone(), client.clone(), namespace.clone()).await;
        world.admin = admin.clone();
        self.world = world;
        self.store_logs().await;
    }

    /// Creates executor 7 as a driver would. It runs a shell command, in which `$GO` names the same file as for drivers.
    pub(crate) async fn execute(&self, id: &SubmissionId, command: &str) {
        let driver = self.world.driver().await.metadata;
        let labels = driver.labels.clone().unwrap();
        let mut labels: BTreeMap<String, String> =
            labels.into_iter().filter(|(key, _)| key.starts_with("sparkgate.dev/")).collect();
        labels.extend(
            [("spark-role", "executor"), ("spark-exec-id", "7")].map(|(key, value)| (key.into(), value.into())),
        );
        let owner =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": driver.name, "uid": driver.uid, "controller": true}]);
        let command = command.replace("$GO", self.dir.path().join("go").to_str().unwrap());
        let pod = json!({"metadata": {"name": "exec-7", "labels": labels, "ownerReferences": owner}, "spec": {"restartPolicy": "Never", "containers": [
            {"name": "mesh", "image": "mesh"},
            {"name": "spark-kubernetes-executor", "image": "spark", "args": ["driver", command]},
            {"name": "logger", "image": "logger"}]}});
        self.world.pods().create(&Default::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        eventually(|| async {
            let executors =
                self.service().submissions.executors(&self.service().anonymous(), id, None, 10).await.unwrap();
            executors.iter().any(|one| one.executor_id == 7).then_some(()).ok_or("it wasn't seen yet")
        })
        .await;
    }

    pub(crate) fn service(&self) -> &Service {
        &self.world.service
    }

    /// Launches a driver that runs a shell command. `$GO` names a file that doesn't exist yet.
    pub(crate) async fn launch(&self, command: &str) -> SubmissionId {
        let mut request = self.world.request(&[]);
        request.app_args = vec![command.replace("$GO", self.dir.path().join("go").to_str().unwrap())];
        let id = self.service().submissions.create(&self.service().anonymous(), request).await.unwrap();
        self.service().launcher.work().await.unwrap();
        id
    }

    /// Creates the file `$GO`, for which drivers wait.
    pub(crate) fn go(&self) {
        std::fs::write(self.dir.path().join("go"), "").unwrap();
    }

    pub(crate) async fn until(&self, id: &SubmissionId, state: DriverState) {
        self.world.until(id, state).await;
    }

    /// Deletes the driver's pod, and with it the pod's log.
    pub(crate) async fn delete_pod(&self) {
        let name = self.world.driver().await.metadata.name.unwrap();
        self.world.pods().delete(&name, &DeleteParams::default()).await.unwrap();
        self.world.until_no_driver().await;
    }

    pub(crate) async fn open(&self, id: &SubmissionId, request: &LogRequest) -> LogStream {
        match self.service().logs.log(&self.service().anonymous(), id, request).await.unwrap() {
            Log::Stream(stream) => stream,
            Log::None(why) => panic!("no log: {why:?}"),
        }
    }

    pub(crate) async fn read(&self, id: &SubmissionId, request: &LogRequest) -> (LogSource, String) {
        let stream = self.open(id, request).await;
        (stream.source, text(stream).await)
    }

    pub(crate) async fn no_log(&self, id: &SubmissionId, request: &LogRequest) -> NoLog {
        match self.service().logs.log(&self.service().anonymous(), id, request).await.unwrap() {
            Log::None(why) => why,
            Log::Stream(stream) => panic!("{}", text(stream).await),
        }
    }
}

fn client(address: std::net::SocketAddr) -> Client {
    let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

pub(crate) async fn text(stream: LogStream) -> String {
    let all: Vec<_> = stream.bytes.map(|piece| piece.unwrap()).collect().await;
    String::from_utf8(all.concat()).unwrap()
}

/// Reads until the stream has sent this text.
pub(crate) async fn read_until(stream: &mut LogStream, expected: &str) -> String {
    let mut all = Vec::new();
    let reading = async {
        while !all.windows(expected.len()).any(|part| part == expected.as_bytes()) {
            all.extend_from_slice(&stream.bytes.next().await.unwrap().unwrap());
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(30), reading).await;
    let all = String::from_utf8(all).unwrap();
    read.unwrap_or_else(|_| panic!("no more than {all:?}"));
    all
}

pub(crate) fn tail(tail: u64) -> LogRequest {
    LogRequest { tail: Some(tail), ..LogRequest::default() }
}

pub(crate) fn follow() -> LogRequest {
    LogRequest { follow: true, ..LogRequest::default() }
}
