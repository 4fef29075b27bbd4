//! etcd and a kube-apiserver, which can be killed and restarted separately. There are no controllers: their work is
//! simulated.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{Namespace, Node},
    rbac::v1::RoleBinding,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use sparkgate_testing::rights::{self, Grant};
use sparkgate_testing::{
    guard::guard,
    process::{Process, free_port, until},
};

/// Logs creates of pods with their replies, which contain the uid. The other requests about pods help with debugging.
const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, verbs: [create, delete], resources: [{group: '', resources: [pods, pods/binding]}]}
- {level: Request, verbs: [patch], resources: [{group: '', resources: [pods, pods/status]}]}
- {level: None}
";

/// The node that all pods are bound to.
pub(crate) const NODE: &str = "node-1";

pub(crate) struct Kubernetes {
    assets: PathBuf,
    directory: PathBuf,
    /// For clients and for peers. There are no peers.
    etcd_ports: [u16; 2],
    pub(crate) port: u16,
    /// The tokens of the administrator and of the gateway.
    tokens: [String; 2],
    etcd: Option<Process>,
    apiserver: Option<Process>,
}

impl Kubernetes {
    pub(super) fn new() -> Self {
        let directory = guard().directory().join("kubernetes");
        std::fs::create_dir_all(&directory).unwrap();
        let tokens = [(); 2].map(|()| uuid::Uuid::new_v4().to_string());
        let gateway = rights::token_line(rights::USER, &tokens[1]);
        let lines = format!("{},admin,admin,system:masters\n{gateway}", tokens[0]);
        std::fs::write(directory.join("tokens.csv"), lines).unwrap();
        std::fs::write(directory.join("audit-policy.yaml"), POLICY).unwrap();
        let etcd_ports = [free_port(), free_port()];
        Self { assets: assets(), directory, etcd_ports, port: free_port(), tokens, etcd: None, apiserver: None }
    }

    /// Starts the servers that don't run.
    pub(crate) fn start(&mut self) {
        let [etcd, peer] = self.etcd_ports.map(|port| format!("http://127.0.0.1:{port}"));
        if !runs(&mut self.etcd) {
            let mut command = Command::new(self.assets.join("etcd"));
            command.args(["--data-dir", "etcd", "--unsafe-no-fsync", "--log-level", "warn"]);
            command.args(["--listen-client-urls", &etcd, "--advertise-client-urls", &etcd]);
            command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
            command.arg(format!("--initial-cluster=default={peer}"));
            self.etcd = Some(self.spawn(command, "etcd.log"));
        }
        if !runs(&mut self.apiserver) {
            let mut command = Command::new(self.assets.join("kube-apiserver"));
            command.arg(format!("--etcd-servers={etcd}")).arg(format!("--secure-port={}", self.port));
            command.args(["--cert-dir=certs", "--bind-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/16"]);
            command.args(["--authorization-mode=RBAC", "--token-auth-file=tokens.csv"]);
            command.args(["--service-account-issuer=https://kubernetes.default.svc"]);
            command.args(["--service-account-key-file=certs/apiserver.key"]);
            command.args(["--service-account-signing-key-file=certs/apiserver.key"]);
            command.args(["--disable-admission-plugins=ServiceAccount", "--audit-policy-file=audit-policy.yaml"]);
            command.args(["--audit-log-path=audit.log", "--audit-log-mode=blocking", "--audit-log-maxsize=4000"]);
            self.apiserver = Some(self.spawn(command, "kube-apiserver.log"));
        }
    }

    fn spawn(&self, mut command: Command, log: &str) -> Process {
        Process::spawn(command.current_dir(&self.directory), &self.directory.join(log))
    }

    pub(crate) fn kill_apiserver(&mut self) {
        self.apiserver = None;
    }

    pub(crate) fn kill_etcd(&mut self) {
        self.etcd = None;
    }

    /// Copies etcd's data.
    #[cfg(test)]
    pub(crate) async fn back_up(&mut self) {
        self.copy("etcd", "etcd.backup").await;
    }

    /// Replaces etcd's data by the copy: all changes since then are undone.
    #[cfg(test)]
    pub(crate) async fn restore(&mut self) {
        self.copy("etcd.backup", "etcd").await;
    }

    #[cfg(test)]
    async fn copy(&mut self, from: &str, to: &str) {
        (self.apiserver, self.etcd) = (None, None);
        let (from, to) = (self.directory.join(from), self.directory.join(to));
        if to.exists() {
            std::fs::remove_dir_all(&to).unwrap();
        }
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
        self.ready().await;
    }

    /// Waits until the API server answers. A server that can't start (its port isn't free yet) is started again.
    pub(crate) async fn ready(&mut self) {
        until("the kube-apiserver is ready", Duration::from_secs(120), async || {
            self.start();
            if !self.directory.join("certs/apiserver.crt").exists() {
                return false;
            }
            let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
            self.client().await.request_text(request).await.is_ok_and(|text| text == "ok")
        })
        .await;
    }

    /// Compacts etcd's history up to now. The API server has a cache of its own: kill it too to remove the history from
    /// both.
    pub(crate) async fn compact(&self) -> Result<(), kube::Error> {
        let list = http::Request::get("/api/v1/namespaces/default/pods?limit=1").body(Vec::new()).unwrap();
        let list: serde_json::Value = self.client().await.request(list).await?;
        let body = serde_json::json!({"revision": list["metadata"]["resourceVersion"], "physical": true});
        let etcd = format!("http://127.0.0.1:{}", self.etcd_ports[0]).parse().unwrap();
        let etcd = kube::Client::try_from(kube::Config::new(etcd)).unwrap();
        let request = http::Request::post("/v3/kv/compaction").body(body.to_string().into_bytes()).unwrap();
        etcd.request_text(request).await.map(drop)
    }

    /// Creates a namespace for drivers, in which the gateway has the rights of the deployment.
    pub(crate) async fn create_namespace(&self, name: &str) {
        let client = self.client().await;
        let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        grant(&client, name).await;
        let gateway = self.client_of(&self.tokens[1]).await;
        let list = format!("/api/v1/namespaces/{name}/pods?limit=1");
        until("the gateway has its rights", Duration::from_secs(30), async || {
            let list = http::Request::get(&list).body(Vec::new()).unwrap();
            gateway.request_text(list).await.is_ok()
        })
        .await;
    }

    /// Registers the node that all pods are bound to, whose kubelet listens on this port.
    pub(crate) async fn register_node(&self, port: u16) {
        let nodes: Api<Node> = Api::all(self.client().await);
        let node = json!({"metadata": {"name": NODE}});
        if let Err(error) = nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await {
            assert!(matches!(&error, kube::Error::Api(status) if status.is_already_exists()), "{error}");
        }
        let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
        nodes.patch_status(NODE, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Returns a client with all rights, for the calling runtime.
    pub(crate) async fn client(&self) -> kube::Client {
        self.client_of(&self.tokens[0]).await
    }

    async fn client_of(&self, token: &str) -> kube::Client {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig_of(token, self.port)).unwrap();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(5));
        config.read_timeout = Some(Duration::from_secs(60));
        kube::Client::try_from(config).unwrap()
    }

    /// Returns the gateway's kubeconfig for the API server behind `port`.
    pub(crate) fn kubeconfig(&self, port: u16) -> String {
        self.kubeconfig_of(&self.tokens[1], port)
    }

    fn kubeconfig_of(&self, token: &str, port: u16) -> String {
        let authority = self.directory.join("certs/apiserver.crt");
        format!(
            "{{apiVersion: v1, kind: Config, current-context: crash, \
             clusters: [{{name: crash, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: '{}'}}}}], \
             users: [{{name: crash, user: {{token: '{token}'}}}}], \
             contexts: [{{name: crash, context: {{cluster: crash, user: crash, namespace: default}}}}]}}",
            authority.display()
        )
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.directory.join("audit.log")
    }
}

/// Grants the gateway the rights that it lacks in a namespace; waits while the API server is down.
pub(crate) async fn grant(client: &kube::Client, namespace: &str) {
    for Grant { collection, object } in rights::in_namespace(namespace) {
        until("a right is granted", Duration::from_secs(120), async || {
            let request = http::Request::post(&collection).header("content-type", "application/json");
            match client.request_text(request.body(object.to_string().into_bytes()).unwrap()).await {
                Ok(_) => true,
                Err(kube::Error::Api(status)) => status.reason == "AlreadyExists",
                Err(_) => false,
            }
        })
        .await;
    }
}

/// Removes the gateway's rights in a namespace, if the API server is up.
pub(crate) async fn revoke(client: &kube::Client, namespace: &str) {
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
    let _ = bindings.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
}

fn runs(process: &mut Option<Process>) -> bool {
    process.as_mut().is_some_and(|process| process.ended().is_none())
}

fn assets() -> PathBuf {
    let named = std::env::var_os("SPARKGATE_KUBE_ASSETS").or_else(|| std::env::var_os("KUBEBUILDER_ASSETS"));
    let named = named.map(PathBuf::from).filter(|directory| Path::exists(&directory.join("kube-apiserver")));
    named.expect(
        "SPARKGATE_KUBE_ASSETS names no directory with etcd and kube-apiserver: \
         run `make test`, or set it to what `scripts/kube` prints",
    )
}
