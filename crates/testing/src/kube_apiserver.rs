//! A real kube-apiserver with etcd and the garbage collector, one for each test binary.
//!
//! The servers are children of `kube-servers`, which ends them and removes their directory when this process ends. The
//! gateway has an account with the rights of the deployment; all other requests of a test are the administrator's.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::{
    process::free_port,
    rights::{self, Grant},
};

/// The script that runs the servers until its standard input closes.
pub const KUBE_SERVERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/kube-servers");

/// How long the servers may take to become ready.
const READY: Duration = Duration::from_secs(120);
const POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// The kubeconfig of the administrator.
pub const ADMIN: &str = "kubeconfig";
/// The kubeconfig of a gateway that serves some namespaces.
pub const GATEWAY: &str = "gateway.kubeconfig";
/// The kubeconfig of a gateway that serves all namespaces.
pub const GATEWAY_EVERYWHERE: &str = "everywhere.kubeconfig";

/// A kube-apiserver with its etcd and controllers.
pub struct KubeApiserver {
    directory: PathBuf,
    api: u16,
    etcd: u16,
    /// Closing its standard input ends the servers; so does the end of this process.
    servers: Child,
}

static SHARED: OnceCell<KubeApiserver> = OnceCell::const_new();

impl KubeApiserver {
    /// Returns the server of this test binary; the first call starts it.
    ///
    /// # Panics
    /// The programs are missing, or don't become ready.
    pub async fn start() -> &'static Self {
        SHARED.get_or_init(|| Self::launch(&[])).await
    }

    /// Does the same with the admission of service accounts, as clusters have it: a pod's account must exist, and its token becomes
    /// a volume of the pod.
    ///
    /// # Panics
    /// As for [`KubeApiserver::start`].
    pub async fn start_with_accounts() -> &'static Self {
        SHARED.get_or_init(|| Self::launch(&[("KUBE_SERVERS_DISABLED", "")])).await
    }

    /// Starts servers with variables of [`KUBE_SERVERS`].
    ///
    /// # Panics
    /// As for [`KubeApiserver::start`].
    pub async fn launch(environment: &[(&str, &str)]) -> Self {
        let assets = assets();
        for _ in 0..3 {
            // Another process may take the port between its selection and its use.
            let server = Self::spawn(&assets, environment);
            if server.becomes_ready().await {
                return server;
            }
        }
        panic!("the kube-apiserver of {} does not start", assets.display());
    }

    fn spawn(assets: &Path, environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::Builder::new().prefix("sparkgate-kube-").tempdir().unwrap().keep();
        let [api, etcd, peer] = [(); 3].map(|()| free_port());
        let [admin, gateway, everywhere] = [(); 3].map(|()| uuid::Uuid::new_v4().to_string());
        let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
        let accounts = [(rights::USER, &gateway), (rights::USER_EVERYWHERE, &everywhere)];
        let accounts = accounts.map(|(user, token)| rights::token_line(user, token)).concat();
        write("tokens.csv", &format!("{admin},admin,admin,system:masters\n{accounts}"));
        write("audit-policy.yaml", POLICY);
        for (file, token) in [(ADMIN, &admin), (GATEWAY, &gateway), (GATEWAY_EVERYWHERE, &everywhere)] {
            write(file, &kubeconfig(&directory, api, token));
        }
        let servers = Command::new(KUBE_SERVERS)
            .args([assets, &directory])
            .args([api, etcd, peer].map(|port| port.to_string()))
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Self { directory, api, etcd, servers }
    }

    async fn becomes_ready(&self) -> bool {
        let deadline = Instant::now() + READY;
        while Instant::now() < deadline {
            if self.file("certs/apiserver.crt").exists() {
                let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
                if self.admin().await.request_text(request).await.is_ok_and(|text| text == "ok") {
                    return true;
                }
            }
            let log = std::fs::read_to_string(self.file("kube-apiserver.log")).unwrap_or_default();
            if log.contains("command failed") {
                return false;
            }
            sleep(Duration::from_millis(100)).await;
        }
        false
    }

    /// Returns a client with all rights, for the runtime of the calling test.
    pub async fn admin(&self) -> kube::Client {
        self.client(ADMIN).await
    }

    /// Returns a client with a token of a service account, for the runtime of the calling test.
    pub async fn with_token(&self, token: &str) -> kube::Client {
        connect(Kubeconfig::from_yaml(&kubeconfig(&self.directory, self.api, token)).unwrap()).await
    }

    /// Returns the gateway's client. [`Self::grant`] gives it rights in a namespace.
    pub async fn gateway(&self) -> kube::Client {
        self.client(GATEWAY).await
    }

    /// Returns the client of a gateway that serves all namespaces, with its rights.
    pub async fn gateway_everywhere(&self) -> kube::Client {
        self.apply(&rights::everywhere()).await;
        let client = self.client(GATEWAY_EVERYWHERE).await;
        until_granted(&client, None).await;
        client
    }

    async fn client(&self, kubeconfig: &str) -> kube::Client {
        connect(Kubeconfig::read_from(self.file(kubeconfig)).unwrap()).await
    }

    /// Creates a namespace for drivers, in which the gateway has its rights.
    pub async fn create_namespace(&self, name: &str) {
        let object = serde_json::from_value(serde_json::json!({"metadata": {"name": name}})).unwrap();
        Api::<Namespace>::all(self.admin().await).create(&PostParams::default(), &object).await.unwrap();
        self.grant(name).await;
    }

    /// Grants the gateway's account the rights of the deployment in a namespace.
    pub async fn grant(&self, namespace: &str) {
        self.apply(&rights::in_namespace(namespace)).await;
        until_granted(&self.gateway().await, Some(namespace)).await;
    }

    async fn apply(&self, grants: &[Grant]) {
        let admin = self.admin().await;
        for Grant { collection, object } in grants {
            let request = http::Request::post(collection).header("content-type", "application/json");
            let request = request.body(object.to_string().into_bytes()).unwrap();
            match admin.request_text(request).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
                Err(error) => panic!("{collection}: {error}"),
            }
        }
    }

    /// Returns the path of one of the servers' files: a kubeconfig, `audit.log` (one JSON object for each request,
    /// written before its answer), `kube-apiserver.log`, …
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns the address of the API server.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.api).into()
    }

    /// Returns the text of a kubeconfig, which leads to a proxy at another address.
    pub fn kubeconfig_at(&self, name: &str, address: SocketAddr) -> String {
        let text = std::fs::read_to_string(self.file(name)).unwrap();
        text.replace(&self.address().to_string(), &address.to_string())
    }

    /// Returns the base address of etcd.
    pub fn etcd(&self) -> http::Uri {
        format!("http://127.0.0.1:{}", self.etcd).parse().unwrap()
    }
}

impl Drop for KubeApiserver {
    fn drop(&mut self) {
        drop(self.servers.stdin.take());
        let _ = self.servers.wait();
    }
}

async fn connect(kubeconfig: Kubeconfig) -> kube::Client {
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

/// Waits until the API server applies the rights, which takes a moment after they are written.
async fn until_granted(client: &kube::Client, namespace: Option<&str>) {
    let deadline = Instant::now() + READY;
    let place = namespace.map_or_else(String::new, |name| format!("/namespaces/{name}"));
    loop {
        let list = http::Request::get(format!("/api/v1{place}/pods?limit=1")).body(Vec::new()).unwrap();
        match client.request_text(list).await {
            Ok(_) => return,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn assets() -> PathBuf {
    let directory =
        std::env::var_os("SPARKGATE_KUBE_ASSETS").or_else(|| std::env::var_os("KUBEBUILDER_ASSETS")).expect(
            "SPARKGATE_KUBE_ASSETS names no directory with etcd, kube-apiserver and kube-controller-manager: \
         run `make test`, or set it to what `scripts/kube` prints",
        );
    PathBuf::from(directory)
}

fn kubeconfig(directory: &Path, port: u16, token: &str) -> String {
    let authority = directory.join("certs/apiserver.crt");
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: '{}'}}}}]\n\
         users: [{{name: test, user: {{token: '{token}'}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: test, namespace: default}}}}]\n",
        authority.display()
    )
}
