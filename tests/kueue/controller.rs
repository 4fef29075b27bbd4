//! The real Kueue, beside the kube-apiserver of the test binary. There is no scheduler and no kubelet: tests play both.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    runtime::{conditions, wait::await_condition},
};
use serde_json::{Value, json};
use sparkgate_testing::{
    SelfSigned,
    kube_apiserver::{ADMIN, KubeApiserver},
};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Instant, sleep},
};

/// How long Kueue may take to become ready.
const READY: Duration = Duration::from_secs(120);
const NAMESPACE: &str = "kueue-system";
/// A port where nothing listens.
const CLOSED: u16 = 1;
/// Kueue's own certificates would be for a Service, which doesn't exist here.
const SECRET: &str = "unused";

pub(crate) struct Controller {
    directory: TempDir,
    webhook: u16,
    health: u16,
    running: Mutex<Option<Child>>,
    /// A test that stops Kueue keeps the others from using it.
    in_use: RwLock<()>,
}

static SHARED: OnceCell<Controller> = OnceCell::const_new();

/// Returns Kueue; the first call starts it. It runs until the returned guard is dropped.
///
/// # Panics
/// It is missing, or doesn't become ready.
pub(crate) async fn kueue() -> RwLockReadGuard<'static, ()> {
    SHARED.get_or_init(Controller::start).await.in_use.read().await
}

/// Returns Kueue for a test that stops it.
pub(crate) async fn kueue_alone() -> (&'static Controller, RwLockWriteGuard<'static, ()>) {
    let controller = SHARED.get_or_init(Controller::start).await;
    (controller, controller.in_use.write().await)
}

impl Controller {
    async fn start() -> Self {
        let admin = KubeApiserver::start().await.admin().await;
        let parts = parts();
        let SelfSigned { certificate, key, .. } = SelfSigned::create();
        let listeners = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let [webhook, health] = listeners.map(|listener| listener.local_addr().unwrap().port());
        let directory = tempfile::Builder::new().prefix("sparkgate-kueue-").tempdir().unwrap();
        let certificates = directory.path().join("certificates");
        fs::create_dir(&certificates).unwrap();
        fs::write(certificates.join("tls.crt"), &certificate).unwrap();
        fs::write(certificates.join("tls.key"), key).unwrap();
        let configuration = json!({
            "apiVersion": "config.kueue.x-k8s.io/v1beta1",
            "kind": "Configuration",
            "namespace": NAMESPACE,
            "health": { "healthProbeBindAddress": format!("127.0.0.1:{health}") },
            "metrics": { "bindAddress": "0" },
            "webhook": { "host": "127.0.0.1", "port": webhook, "certDir": certificates },
            "leaderElection": { "leaderElect": false },
            "internalCertManagement": { "enable": true, "webhookServiceName": SECRET, "webhookSecretName": SECRET },
            "integrations": { "frameworks": ["batch/job", "pod"] }
        });
        fs::write(directory.path().join("configuration.json"), configuration.to_string()).unwrap();
        install(&admin, &parts, webhook, &certificate).await;
        let controller = Self { directory, webhook, health, running: Mutex::default(), in_use: RwLock::default() };
        controller.run().await;
        controller
    }

    /// Starts the process, and waits until it serves its webhooks.
    pub(crate) async fn run(&self) {
        let log = fs::File::create(self.directory.path().join("kueue.log")).unwrap();
        // Kueue ends with this process, however that ends: its standard input closes.
        let process = Command::new("bash")
            .args([
                "-c",
                "trap '' INT TERM HUP; \"$@\" < /dev/null & read -r _ || true; disown -a; kill -KILL $!",
                "kueue",
            ])
            .arg(parts().join("kueue"))
            .arg("--config")
            .arg(self.directory.path().join("configuration.json"))
            .args(["--feature-gates=VisibilityOnDemand=false", "--zap-log-level=2"])
            .env("KUBECONFIG", KubeApiserver::start().await.file(ADMIN))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        *self.running.lock().unwrap() = Some(process);
        let deadline = Instant::now() + READY;
        while !self.is_ready().await {
            assert!(Instant::now() < deadline, "Kueue doesn't become ready:\n{}", self.log());
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Kills the process. The configuration of its webhooks stays.
    pub(crate) fn kill(&self) {
        let Some(mut process) = self.running.lock().unwrap().take() else { return };
        drop(process.stdin.take());
        process.wait().unwrap();
    }

    /// Lets the API server find Kueue's webhooks, or look for them where nothing listens. Kueue itself goes on.
    pub(crate) async fn serve_webhooks(&self, is_served: bool) {
        let admin = KubeApiserver::start().await.admin().await;
        let port = if is_served { self.webhook } else { CLOSED };
        for kind in ["mutating", "validating"] {
            let collection = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            let found: Value = admin.request(Request::get(&collection).body(Vec::new()).unwrap()).await.unwrap();
            for configuration in found["items"].as_array().unwrap() {
                let mut hooks = configuration["webhooks"].clone();
                for hook in hooks.as_array_mut().unwrap() {
                    let url = hook["clientConfig"]["url"].as_str().unwrap();
                    let (_, path) = url.trim_start_matches("https://").split_once('/').unwrap();
                    hook["clientConfig"]["url"] = format!("https://127.0.0.1:{port}/{path}").into();
                }
                let path = format!("{collection}/{}", configuration["metadata"]["name"].as_str().unwrap());
                let patch = json!({ "webhooks": hooks }).to_string().into_bytes();
                let request = Request::patch(path).header("content-type", "application/merge-patch+json");
                admin.request::<Value>(request.body(patch).unwrap()).await.unwrap();
            }
        }
        // The API server applies it a moment later.
        let pod = json!({"metadata": {"name": "any"}, "spec": {"containers": [{"name": "any", "image": "any"}]}});
        let deadline = Instant::now() + READY;
        loop {
            let request = Request::post("/api/v1/namespaces/default/pods?dryRun=All");
            let request = request.header("content-type", "application/json").body(pod.to_string().into_bytes());
            if admin.request::<Value>(request.unwrap()).await.is_ok() == is_served {
                return;
            }
            assert!(Instant::now() < deadline, "the API server doesn't apply the webhooks' address");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_ready(&self) -> bool {
        let url = format!("http://127.0.0.1:{}/readyz", self.health);
        let Ok(answer) = reqwest::get(url).await else { return false };
        answer.status().is_success() && TcpStream::connect((Ipv4Addr::LOCALHOST, self.webhook)).await.is_ok()
    }

    /// Returns the errors in its log.
    fn log(&self) -> String {
        let log = fs::read_to_string(self.directory.path().join("kueue.log")).unwrap_or_default();
        log.lines().filter(|line| line.contains("\"level\":\"error\"")).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the directory that `scripts/kueue` prints.
fn parts() -> PathBuf {
    let parts = std::env::var_os("SPARKGATE_KUEUE").expect(
        "SPARKGATE_KUEUE names no directory with Kueue: run `make test`, or set it to what `scripts/kueue` prints",
    );
    PathBuf::from(parts)
}

/// Installs Kueue's resources and webhooks, as its release has them.
async fn install(admin: &Client, parts: &Path, webhook: u16, certificate: &str) {
    let mut definitions: Vec<_> = fs::read_dir(parts.join("crd")).unwrap().map(|file| file.unwrap().path()).collect();
    definitions.sort();
    let api: Api<CustomResourceDefinition> = Api::all(admin.clone());
    for path in definitions {
        let definition = read(&path).remove(0);
        create(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        let name = definition["metadata"]["name"].as_str().unwrap();
        await_condition(api.clone(), name, conditions::is_crd_established()).await.unwrap();
    }
    create(admin, "/api/v1/namespaces", &json!({ "metadata": { "name": NAMESPACE } })).await;
    let secret = json!({ "metadata": { "name": SECRET } });
    create(admin, &format!("/api/v1/namespaces/{NAMESPACE}/secrets"), &secret).await;
    for mut configuration in read(&parts.join("webhook/manifests.yaml")) {
        for hook in configuration["webhooks"].as_array_mut().unwrap().iter_mut() {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            let url = format!("https://127.0.0.1:{webhook}{path}");
            hook["clientConfig"] = json!({ "url": url, "caBundle": STANDARD.encode(certificate) });
        }
        // As in the release: not for the namespaces of the control plane. Here only those of tests.
        for hook in configuration["webhooks"].as_array_mut().unwrap().iter_mut() {
            if hook["rules"][0]["resources"] == json!(["pods"]) {
                hook["namespaceSelector"] = json!({ "matchExpressions": [{
                    "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE] }] });
            }
        }
        let plural = format!("{}s", configuration["kind"].as_str().unwrap().to_lowercase());
        create(admin, &format!("/apis/admissionregistration.k8s.io/v1/{plural}"), &configuration).await;
    }
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let documents = text.split("\n---\n").map(|document| document.trim_start_matches("---\n"));
    documents.map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// Creates an object in a collection.
pub(crate) async fn create(admin: &Client, collection: &str, object: &Value) -> Value {
    let request = Request::post(collection).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    admin.request(request).await.unwrap_or_else(|error| panic!("{collection}: {error}"))
}
