//! A kube-apiserver with etcd, on which the objects of an access file have been applied.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use sparkgate_access::Access;
use sparkgate_admission::{GatewayAccount, Object, objects};
use sparkgate_testing::kube_apiserver::KUBE_SERVERS;
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep},
};

const READY: Duration = Duration::from_secs(120);
const ACCESS: &str = include_str!("../../../crates/admission/src/tests/access.yaml");
const ADMIN: &str = "admin";
/// A driver that is older than the policies, and tolerates all taints.
pub(crate) const EARLIER_POD: &str = "earlier";

pub(crate) struct World {
    directory: PathBuf,
    port: u16,
    pub(crate) objects: Vec<Object>,
    /// The objects as the API server returned them after they were applied.
    pub(crate) applied: Vec<Value>,
    /// Closing its standard input ends the servers; so does the end of this process.
    _servers: Child,
}

static SHARED: OnceCell<World> = OnceCell::const_new();

/// Returns the world of this test binary; the first call starts it.
pub(crate) async fn world() -> &'static World {
    SHARED.get_or_init(World::start).await
}

/// A caller of the API server: its token.
#[derive(Clone)]
pub(crate) struct Caller(String);

/// A request that changes something, or only would.
pub(crate) struct Change<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: String,
    pub(crate) content_type: &'a str,
    pub(crate) body: Value,
}

impl World {
    async fn start() -> Self {
        let assets = std::env::var_os("SPARKGATE_KUBE_ASSETS").or_else(|| std::env::var_os("KUBEBUILDER_ASSETS"));
        let assets = PathBuf::from(assets.expect(
            "SPARKGATE_KUBE_ASSETS names no directory with etcd, kube-apiserver and kube-controller-manager: \
             run `make test`, or set it to what `scripts/kube` prints",
        ));
        let gateway = GatewayAccount::default();
        let objects = objects(&Access::parse(ACCESS).unwrap(), &gateway, 10.try_into().unwrap()).unwrap();
        let directory = tempfile::Builder::new().prefix("sparkgate-admission-").tempdir().unwrap().keep();
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|listener| listener.local_addr().unwrap().port());
        let servers = spawn(&assets, &directory, ports);
        let mut world = Self { directory, port: ports[0], objects, applied: Vec::new(), _servers: servers };
        world.until("the API server is ready", async |world| world.get(&world.admin(), "/readyz").await).await;
        world.apply().await;
        world.until("the admission policies are in force", Self::in_force).await;
        world
    }

    pub(crate) fn admin(&self) -> Caller {
        Caller(ADMIN.to_owned())
    }

    /// Returns the gateway's caller.
    pub(crate) async fn gateway(&self) -> Caller {
        self.account("sparkgate", "sparkgate", None).await
    }

    /// Returns a service account's caller, with a token that is bound to a pod, as the kubelet's tokens are, or to none.
    pub(crate) async fn account(&self, namespace: &str, name: &str, pod: Option<&Value>) -> Caller {
        let bound = pod.map(|pod| {
            let metadata = &pod["metadata"];
            json!({ "apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"] })
        });
        let body = json!({ "spec": { "expirationSeconds": 3600, "boundObjectRef": bound } });
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let answer = self.call(&self.admin(), &Change::post(path, body)).await.unwrap();
        Caller(answer["status"]["token"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn get(&self, caller: &Caller, path: &str) -> Result<Value, String> {
        let change =
            Change { method: "GET", path: path.to_owned(), content_type: "application/json", body: Value::Null };
        self.call(caller, &change).await
    }

    /// Sends a request; the error is the message of the API server.
    pub(crate) async fn call(&self, caller: &Caller, change: &Change<'_>) -> Result<Value, String> {
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig(&self.directory, self.port, &caller.0)).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = kube::Client::try_from(config.map_err(|error| error.to_string())?).unwrap();
        let request = http::Request::builder().method(change.method).uri(&change.path);
        let request = request.header("content-type", change.content_type);
        let body = if change.body.is_null() { Vec::new() } else { change.body.to_string().into_bytes() };
        match client.request_text(request.body(body).unwrap()).await {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
            Err(kube::Error::Api(status)) => Err(status.message.clone()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Applies all objects, and reads them back.
    async fn apply(&mut self) {
        let admin = self.admin();
        let body = json!({ "metadata": { "name": "sparkgate" } });
        self.call(&admin, &Change::post("/api/v1/namespaces".to_owned(), body.clone())).await.unwrap();
        let accounts = "/api/v1/namespaces/sparkgate/serviceaccounts".to_owned();
        self.call(&admin, &Change::post(accounts, body)).await.unwrap();
        self.create_earlier_pod().await;
        for object in &self.objects {
            let path = path(&object.manifest);
            let apply = Change {
                method: "PATCH",
                path: format!("{path}?fieldManager=test"),
                content_type: "application/apply-patch+yaml",
                body: object.manifest.clone(),
            };
            self.call(&admin, &apply).await.unwrap();
            self.applied.push(self.get(&admin, &path).await.unwrap());
        }
        // Without its level, what the admission policies refuse is refused by them alone.
        let label = json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "privileged" } } });
        self.call(&admin, &Change::patch("/api/v1/namespaces/reports".to_owned(), label)).await.unwrap();
    }

    /// Creates a driver that the policy wouldn't permit, before there is one.
    async fn create_earlier_pod(&self) {
        let admin = self.admin();
        let create = async |path: &str, body| {
            self.call(&admin, &Change::post(path.to_owned(), body)).await.unwrap();
        };
        create("/api/v1/namespaces", json!({ "metadata": { "name": "analytics" } })).await;
        create("/api/v1/namespaces/analytics/serviceaccounts", json!({ "metadata": { "name": "spark" } })).await;
        let mut pod = super::driver(EARLIER_POD);
        pod["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
        create("/api/v1/namespaces/analytics/pods", pod).await;
    }

    /// Fails until policies, rights and quotas have reached the API server's caches.
    async fn in_force(world: &Self) -> Result<(), String> {
        let gateway = world.gateway().await;
        for (namespace, image) in [("analytics", "spark"), ("analytics-batch", "spark"), ("reports", "any")] {
            let pods = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
            let driver = |account: &str| super::pod("probe", "driver", account, image);
            world.call(&gateway, &Change::post(pods.clone(), driver("spark"))).await?;
            let refused = |result: Result<Value, String>| match result {
                Ok(_) => Err(format!("a policy is not in force in {namespace}")),
                Err(_) => Ok(()),
            };
            refused(world.call(&world.admin(), &Change::post(pods.clone(), driver("spark"))).await)?;
            let mut privileged = driver("foreign");
            privileged["spec"]["hostNetwork"] = json!(true);
            refused(world.call(&gateway, &Change::post(pods, privileged)).await)?;
        }
        let claims = "/api/v1/namespaces/analytics/persistentvolumeclaims?dryRun=All".to_owned();
        let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
        let claim = json!({ "metadata": { "name": "probe" }, "spec": spec });
        let spark = world.account("analytics", "spark", None).await;
        match world.call(&spark, &Change::post(claims, claim)).await {
            Err(message) if message.contains("denied request") => Ok(()),
            answer => Err(format!("the policy of claims is not in force: {answer:?}")),
        }
    }

    /// Waits until a check succeeds.
    pub(crate) async fn until<T>(&self, what: &str, check: impl AsyncFn(&Self) -> Result<T, String>) -> T {
        let deadline = Instant::now() + READY;
        loop {
            // The certificate is written by the API server.
            let result = match self.directory.join("certs/apiserver.crt").exists() {
                true => check(self).await,
                false => Err("the API server has no certificate yet".to_owned()),
            };
            match result {
                Ok(value) => return value,
                Err(error) => assert!(Instant::now() < deadline, "{what}: {error}"),
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Change<'_> {
    pub(crate) fn post(path: String, body: Value) -> Self {
        Self { method: "POST", path, content_type: "application/json", body }
    }

    pub(crate) fn patch(path: String, body: Value) -> Self {
        Self { method: "PATCH", path, content_type: "application/merge-patch+json", body }
    }

    pub(crate) fn delete(path: String) -> Self {
        Self { method: "DELETE", path, content_type: "application/json", body: Value::Null }
    }
}

fn spawn(assets: &Path, directory: &Path, ports: [u16; 3]) -> Child {
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    write("tokens.csv", &format!("{ADMIN},{ADMIN},{ADMIN},system:masters\n"));
    write("audit-policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n");
    write("kubeconfig", &kubeconfig(directory, ports[0], ADMIN));
    Command::new(KUBE_SERVERS)
        .args([assets, directory])
        .args(ports.map(|port| port.to_string()))
        .env("KUBE_SERVERS_CONTROLLERS", "resourcequota-controller,validatingadmissionpolicy-status-controller")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap()
}

fn kubeconfig(directory: &Path, port: u16, token: &str) -> String {
    let authority = directory.join("certs/apiserver.crt");
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: '{}'}}}}]\n\
         users: [{{name: test, user: {{token: '{token}'}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n",
        authority.display()
    )
}

/// Returns the path of an object.
pub(crate) fn path(manifest: &Value) -> String {
    let api = manifest["apiVersion"].as_str().unwrap();
    let prefix = if api == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api}") };
    let namespace = manifest["metadata"]["namespace"].as_str();
    let namespace = namespace.map_or_else(String::new, |name| format!("/namespaces/{name}"));
    let kind = manifest["kind"].as_str().unwrap().to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    format!("{prefix}{namespace}/{plural}/{}", manifest["metadata"]["name"].as_str().unwrap())
}
