//! One API server, and for each round a namespace with a gateway of each Spark line.

use std::{collections::BTreeMap, io::Write, time::Duration};

use axum::{Router, body::Body};
use http::{Method, Request, header};
use http_body_util::BodyExt;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    api::{HttpSettings, router},
    cluster::Cluster,
    service::{AccessFile, Caps, KeyRequest, Service, Settings, SparkSettings, Submitter},
    store::Store,
};
use sparkgate_admission::{GatewayAccount, objects};
use sparkgate_testing::{kube_apiserver::KubeApiserver, rights};
use sqlx::PgPool;
use tempfile::{NamedTempFile, TempDir};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt;

use crate::attacks::corpus::{Case, Files, RELEASES};

/// The policy of all rounds; `judge` knows it by heart.
pub(crate) const POLICY: &str = r#"{
    "podSecurity": "baseline",
    "images": ["registry.example.org/team/**"],
    "volumes": ["configMap", "csi", "emptyDir", "ephemeral", "image", "nfs", "persistentVolumeClaim", "projected", "secret"],
    "projectedSources": ["configMap", "secret", "serviceAccountToken"],
    "claims": ["team-*"],
    "csiDrivers": ["csi.example.org"],
    "nfsServers": ["nfs.example.org"],
    "secrets": ["team-*"],
    "configMaps": ["team-*"],
    "nodeSelectors": ["pool=team"],
    "tolerations": ["pool"],
    "priorityClasses": ["batch"],
    "runtimeClasses": ["gvisor"],
    "schedulers": ["team-scheduler"],
    "queues": ["team"],
    "topologySpread": false,
    "storageClasses": ["standard"],
    "limits": {
        "driver": {"cores": 4, "memory": "8Gi"}, "executor": {"cores": 4, "memory": "8Gi"}, "executors": 4,
        "storage": "10Gi", "emptyDir": "1Gi", "resources": {}, "containers": 4, "terminationGracePeriodSeconds": 120
    },
    "labels": {"allow": ["team"]},
    "annotations": {"deny": ["blocked.example.org/*"]},
    "resources": ["local:///opt/**", "s3a://team/**"],
    "inlineSecrets": "forbid"
}"#;

/// How long the API server may take to apply what was written, and the gateway to launch all drivers.
const PATIENCE: Duration = Duration::from_secs(300);

/// What refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// The policy of the gateway.
    Policy,
    /// The objects of `sparkgate admission`, with a gateway that has no policy.
    Admission,
    Both,
}

impl Round {
    pub(crate) const ALL: [Self; 3] = [Self::Policy, Self::Admission, Self::Both];

    pub(crate) fn namespace(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Admission => "admission",
            Self::Both => "both",
        }
    }

    pub(crate) fn has_policy(self) -> bool {
        self != Self::Admission
    }

    pub(crate) fn has_admission(self) -> bool {
        self != Self::Policy
    }
}

pub(crate) struct World {
    pub(crate) namespace: &'static str,
    round: Round,
    admin: kube::Client,
    pool: PgPool,
    gateways: BTreeMap<&'static str, Router>,
    spark: BTreeMap<&'static str, SparkSettings>,
    launcher: Service,
    /// The text of an API key, if the gateway asks for one.
    key: Option<String>,
    _living: DropGuard,
    _files: (TempDir, NamedTempFile),
}

/// An answer of the gateway.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Who sends a request to the API server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caller<'a> {
    Admin,
    Gateway,
    /// The account of a driver, with a token of its pod.
    Driver(&'a Value),
}

/// An answer of the API server: an object, or the status and the message of an error.
pub(crate) type Reply = Result<Value, (u16, String)>;

static CLUSTER: OnceCell<()> = OnceCell::const_new();

impl World {
    pub(crate) async fn new(pool: PgPool, round: Round, files: &Files) -> Self {
        let server = KubeApiserver::start_with_accounts().await;
        CLUSTER.get_or_init(|| prepare(server)).await;
        let (namespace, admin, client) = (round.namespace(), server.admin().await, server.gateway().await);
        let directory = written(files);
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(access(&[round]).to_string().as_bytes()).unwrap();
        let property = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let defaults = BTreeMap::from([
            property("spark.kubernetes.container.image", "registry.example.org/team/spark:1"),
            property("spark.kubernetes.authenticate.driver.serviceAccountName", "spark"),
            property("spark.kubernetes.namespace", namespace),
        ]);
        let living = CancellationToken::new();
        let (mut gateways, mut sparks, mut services) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for release in RELEASES {
            let submitter = Submitter::read(directory.path()).unwrap();
            let (version, defaults) = (release.parse().unwrap(), defaults.clone());
            let spark = SparkSettings::new(version, defaults, submitter, "tester".to_owned());
            sparks.insert(release, spark.clone());
            let settings = Settings { spark, outcome_finalizer: true, caps: Caps::default(), kept_log: 0 };
            let cluster = Cluster::new(client.clone(), &[namespace.to_owned()]);
            let store = Store::new(pool.clone());
            let service = match round.has_policy() {
                true => {
                    let access = AccessFile::open(file.path().to_owned(), settings).unwrap();
                    Service::new(store, cluster, access).await.unwrap()
                }
                false => Service::new(store, cluster, settings).await.unwrap(),
            };
            gateways.insert(release, router(service.clone(), HttpSettings::default()).unwrap());
            services.push(service);
        }
        let launcher = services.pop().unwrap();
        tokio::spawn(launcher.leadership.clone().run_renewal(living.clone()));
        let key = match round.has_policy() {
            true => {
                let tenant = Some(namespace.to_owned());
                let request = KeyRequest { name: "corpus".to_owned(), tenant, role: Role::Submitter, expires_in: None };
                let created = launcher.api_keys.create_by_operator(&request).await.unwrap();
                Some(created.text.expose_secret().to_owned())
            }
            false => None,
        };
        let _living = living.drop_guard();
        let _files = (directory, file);
        Self { namespace, round, admin, pool, gateways, spark: sparks, launcher, key, _living, _files }
    }

    pub(crate) fn has_policy(&self) -> bool {
        self.round.has_policy()
    }

    /// Returns the settings of the gateway of a release.
    pub(crate) fn spark(&self, release: &str) -> &SparkSettings {
        &self.spark[release]
    }

    /// Submits a case to the gateway of its release.
    pub(crate) async fn submit(&self, case: &Case) -> Answer {
        self.post(case, case.request.path).await
    }

    /// Sends a case as a dry run.
    pub(crate) async fn dry_run(&self, case: &Case) -> Answer {
        self.post(case, &format!("{}?dryRun=true", case.request.path)).await
    }

    async fn post(&self, case: &Case, path: &str) -> Answer {
        let mut request =
            Request::post(path).header(header::HOST, "gateway").header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(Body::from(case.request.body.to_string())).unwrap();
        let response = self.gateways[case.release].clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Answer { status, body: serde_json::from_slice(&body).unwrap() }
    }

    /// Launches all submissions, and returns why the API server refused some of them, by their ids.
    pub(crate) async fn launch(&self) -> BTreeMap<String, String> {
        let stop = CancellationToken::new();
        let running = tokio::spawn(self.launcher.launcher.clone().run(stop.clone()));
        let deadline = Instant::now() + PATIENCE;
        loop {
            let waiting = "SELECT count(*) FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING')";
            let count: i64 = sqlx::query_scalar(waiting).fetch_one(&self.pool).await.unwrap();
            if count == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{count} drivers are not launched");
            sleep(Duration::from_millis(100)).await;
        }
        stop.cancel();
        running.await.unwrap();
        let refused = "SELECT id, coalesce(message, reason, '') FROM submissions WHERE state = 'ERROR'";
        let refused: Vec<(String, String)> = sqlx::query_as(refused).fetch_all(&self.pool).await.unwrap();
        refused.into_iter().collect()
    }

    /// Returns all objects of a kind in the namespace.
    pub(crate) async fn list(&self, group: &str, plural: &str) -> Vec<Value> {
        let path = format!("{group}/namespaces/{}/{plural}", self.namespace);
        let list = self.call(Caller::Admin, Method::GET, &path, "application/json", String::new()).await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Sends a request to the API server.
    pub(crate) async fn call(
        &self,
        caller: Caller<'_>,
        method: Method,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Reply {
        call(&self.admin, caller, method, path, content_type, body).await
    }
}

/// Sends a request to the API server with the rights of an administrator, who impersonates the caller: to authorization and admission
/// it is the same as a token of the caller.
async fn call(
    admin: &kube::Client,
    caller: Caller<'_>,
    method: Method,
    path: &str,
    content_type: &str,
    body: String,
) -> Reply {
    let mut request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
    let accounts =
        |namespace: &str| ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let impersonated = match caller {
        Caller::Admin => None,
        Caller::Gateway => Some((rights::USER.to_owned(), "sparkgate")),
        Caller::Driver(pod) => {
            let namespace = pod["metadata"]["namespace"].as_str().unwrap();
            let extra = |field: &str| pod["metadata"][field].as_str().unwrap().to_owned();
            request = request
                .header("Impersonate-Extra-authentication.kubernetes.io%2Fpod-name", extra("name"))
                .header("Impersonate-Extra-authentication.kubernetes.io%2Fpod-uid", extra("uid"));
            Some((format!("system:serviceaccount:{namespace}:spark"), namespace))
        }
    };
    if let Some((user, namespace)) = impersonated {
        request = request.header("Impersonate-User", user);
        for group in accounts(namespace) {
            request = request.header("Impersonate-Group", group);
        }
    }
    match admin.request_text(request.body(body.into_bytes()).unwrap()).await {
        Ok(text) => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
        Err(kube::Error::Api(status)) => Err((status.code, status.message.clone())),
        Err(error) => panic!("{path}: {error}"),
    }
}

/// Returns an access file with a tenant for each round.
fn access(rounds: &[Round]) -> Value {
    let policy: Value = serde_json::from_str(POLICY).unwrap();
    let tenant = |round: &Round| {
        let name = round.namespace();
        (name.to_owned(), json!({"namespaces": [name], "serviceAccounts": ["spark"], "policy": policy}))
    };
    let tenants: serde_json::Map<String, Value> = rounds.iter().map(tenant).collect();
    let rates = json!({"writes": "100000/s", "reads": "100000/s", "failedLogins": "100000/s"});
    json!({"authentication": {"apiKeys": {"enabled": true}}, "tenants": tenants, "limits": rates})
}

/// Writes a submitter directory.
fn written(files: &Files) -> TempDir {
    let directory = TempDir::with_prefix("sparkgate-attacks-").unwrap();
    for (folder, suffix, files) in [("defaults", ".conf", &files.defaults), ("files", "", &files.files)] {
        std::fs::create_dir(directory.path().join(folder)).unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(folder).join(format!("{name}{suffix}")), text).unwrap();
        }
    }
    directory
}

/// Creates what the cluster has, and the objects of `sparkgate admission`; without the label of its tenant, the namespace of the round
/// without admission is none that the admission policies select. Quotas are left out: they bound counts, and would refuse first.
async fn prepare(server: &KubeApiserver) {
    let admin = server.admin().await;
    let apply = async |object: &Value| {
        let path = format!("{}?fieldManager=test&force=true", path(object));
        let apply = "application/apply-patch+yaml";
        call(&admin, Caller::Admin, Method::PATCH, &path, apply, object.to_string()).await.unwrap();
    };
    for (name, value) in [("batch", 1000), ("urgent", 1_000_000)] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
        apply(&class).await;
    }
    for name in ["gvisor", "kata"] {
        let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name});
        apply(&class).await;
    }
    let access = sparkgate::access::Access::parse(&access(&Round::ALL).to_string()).unwrap();
    for object in objects(&access, &GatewayAccount::default(), 10.try_into().unwrap()).unwrap() {
        let mut manifest = object.manifest;
        if manifest["kind"] == "ResourceQuota" {
            continue;
        }
        if manifest["kind"] == "Namespace" && manifest["metadata"]["name"] == Round::Policy.namespace() {
            manifest["metadata"]["labels"] = json!({});
        }
        apply(&manifest).await;
    }
    for round in Round::ALL {
        for account in ["admin", "default"] {
            let metadata = json!({"name": account, "namespace": round.namespace()});
            apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})).await;
        }
        in_force(&admin, round).await;
    }
}

/// Waits until the rights and the admission policies of a namespace have reached the API server's caches.
async fn in_force(admin: &kube::Client, round: Round) {
    let deadline = Instant::now() + PATIENCE;
    let path = format!("/api/v1/namespaces/{}/pods?dryRun=All", round.namespace());
    let pod = |image: &str| {
        let resources = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
        json!({
            "metadata": {"name": "probe", "labels": {"spark-role": "driver"}},
            "spec": {"serviceAccountName": "spark", "restartPolicy": "Never",
                "containers": [{"name": "main", "image": image, "resources": resources}]},
        })
    };
    let good = pod("registry.example.org/team/spark:1").to_string();
    let evil = pod("evil").to_string();
    loop {
        let post = |caller, body: &str| call(admin, caller, Method::POST, &path, "application/json", body.to_owned());
        let accepted = post(Caller::Gateway, &good).await;
        let refused = [post(Caller::Admin, &good).await, post(Caller::Gateway, &evil).await];
        let expected = refused.iter().all(|reply| reply.is_err() == round.has_admission());
        if accepted.is_ok() && expected {
            return;
        }
        assert!(Instant::now() < deadline, "{accepted:?} {refused:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the path of an object.
fn path(object: &Value) -> String {
    let api = object["apiVersion"].as_str().unwrap();
    let prefix = if api == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api}") };
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = namespace.map_or_else(String::new, |name| format!("/namespaces/{name}"));
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = match (kind.strip_suffix('y'), kind.ends_with('s')) {
        (Some(stem), _) => format!("{stem}ies"),
        (None, true) => format!("{kind}es"),
        (None, false) => format!("{kind}s"),
    };
    format!("{prefix}{namespace}/{plural}/{}", object["metadata"]["name"].as_str().unwrap())
}
