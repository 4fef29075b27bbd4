//! A kube-apiserver with etcd, on which the objects of an access file have been applied.

use std::time::Duration;

use serde_json::{Value, json};
use sparkgate_access::Access;
use sparkgate_admission::{GatewayAccount, Object, objects};
use sparkgate_testing::kube_apiserver::KubeApiserver;
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep},
};

const READY: Duration = Duration::from_secs(120);
const ACCESS: &str = include_str!("../../../crates/admission/src/tests/access.yaml");
/// A driver that is older than the policies, and tolerates all taints.
pub(crate) const EARLIER_POD: &str = "earlier";

pub(crate) struct World {
    server: KubeApiserver,
    pub(crate) objects: Vec<Object>,
    /// The objects as the API server returned them after they were applied.
    pub(crate) applied: Vec<Value>,
}

static SHARED: OnceCell<World> = OnceCell::const_new();

/// Returns the world of this test binary; the first call starts it.
pub(crate) async fn world() -> &'static World {
    SHARED.get_or_init(World::start).await
}

/// A caller of the API server.
#[derive(Clone)]
pub(crate) enum Caller {
    Admin,
    /// A service account, by its token.
    Account(String),
}

/// A request that changes something, or only would.
pub(crate) struct Change<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: String,
    pub(crate) content_type: &'a str,
    pub(crate) body: Value,
}

impl World {
    async fn start() -> Self {
        let gateway = GatewayAccount::default();
        let objects = objects(&Access::parse(ACCESS).unwrap(), &gateway, 10.try_into().unwrap()).unwrap();
        let controllers = "resourcequota-controller,validatingadmissionpolicy-status-controller";
        let server = KubeApiserver::launch(&[("KUBE_SERVERS_CONTROLLERS", controllers)]).await;
        let mut world = Self { server, objects, applied: Vec::new() };
        world.apply().await;
        world.until("the admission policies are in force", Self::in_force).await;
        world
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
        let answer = self.call(&Caller::Admin, &Change::post(path, body)).await.unwrap();
        Caller::Account(answer["status"]["token"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn get(&self, caller: &Caller, path: &str) -> Result<Value, String> {
        let change =
            Change { method: "GET", path: path.to_owned(), content_type: "application/json", body: Value::Null };
        self.call(caller, &change).await
    }

    /// Sends a request; the error is the message of the API server.
    pub(crate) async fn call(&self, caller: &Caller, change: &Change<'_>) -> Result<Value, String> {
        let client = match caller {
            Caller::Admin => self.server.admin().await,
            Caller::Account(token) => self.server.with_token(token).await,
        };
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
        let admin = Caller::Admin;
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
        let admin = Caller::Admin;
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
            refused(world.call(&Caller::Admin, &Change::post(pods.clone(), driver("spark"))).await)?;
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
            match check(self).await {
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
