//! A gateway that serves sessions, and clients of them.

use std::net::SocketAddr;

use axum::body::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Incoming},
    client::conn::http2,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    api::connect_listener,
    server::{ServerSettings, serve},
    service::Service,
};
use sparkgate_testing::wait::until;
use sqlx::PgPool;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Driver, named, open, serving};
use crate::access::world::{TWO_TENANTS, World};

pub(super) struct Place {
    pub(super) world: World,
    /// The key of a submitter of the tenant `red`.
    pub(super) key: String,
    door: SocketAddr,
    _serving: DropGuard,
}

/// Headers, data and trailers of a response.
pub(super) type Called = Result<(HeaderMap, Vec<u8>, HeaderMap), String>;

impl Place {
    pub(super) async fn new(pool: PgPool) -> Self {
        Self::with_access(pool, TWO_TENANTS).await
    }

    /// Starts a gateway with an access file that has the tenants `red` and `blue`.
    pub(super) async fn with_access(pool: PgPool, access: &str) -> Self {
        let world = World::new(pool, access).await;
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "red"}})).unwrap();
        Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let key = world.key(Role::Submitter, Some("red")).await;
        Self::of(world, key).await
    }

    /// Starts another replica.
    pub(super) async fn beside(other: &Self) -> Self {
        let store = sparkgate::store::Store::new(other.world.pool.clone());
        let (pool, client) = (other.world.pool.clone(), other.world.client.clone());
        let world = World::of(store, pool, TWO_TENANTS, client, sparkgate::service::EncryptionKeys::none()).await;
        Self::of(world, other.key.clone()).await
    }

    async fn of(mut world: World, key: String) -> Self {
        world.configure(serving).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = listener.local_addr().unwrap();
        let serving = run(&world.service, listener);
        Self { world, key, door, _serving: serving }
    }

    /// Opens a session whose server is `driver`, launches its driver, and lets it run.
    pub(super) async fn running(&self, driver: &Driver) -> String {
        self.running_as(driver, named(&format!("s-{}", uuid::Uuid::new_v4().simple()))).await
    }

    /// Does the same with a session that is requested like this.
    pub(super) async fn running_as(&self, driver: &Driver, mut body: Value) -> String {
        body["sparkProperties"]["spark.connect.grpc.binding.port"] = json!(driver.address.port().to_string());
        let opened = open(self, &self.key, &body).await;
        assert_eq!(opened.status, 201, "{}", opened.body);
        let id = opened.json()["id"].as_str().unwrap().to_owned();
        self.world.service.launcher.work().await.unwrap();
        let pod = self.pod_of(&id).await;
        let pods = Api::<Pod>::namespaced(self.world.client.clone(), "red");
        let status = json!({"status": {"phase": "Running", "podIP": driver.address.ip()}});
        pods.patch_status(&pod, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        self.set(&id, "state = 'RUNNING', started_at = clock_timestamp()").await;
        id
    }

    async fn pod_of(&self, id: &str) -> String {
        let document = self.world.get(&self.key, &format!("/v1/submissions/{id}")).await.json();
        document["driver"]["pod"].as_str().unwrap().to_owned()
    }

    /// Returns the token in the Secret that the driver's pod owns and reads its variable from.
    pub(super) async fn token_of(&self, id: &str) -> String {
        let pods = Api::<Pod>::namespaced(self.world.client.clone(), "red");
        let pod = pods.get(&self.pod_of(id).await).await.unwrap();
        let spec = pod.spec.unwrap();
        let env = spec.containers.last().unwrap().env.iter().flatten();
        let mut tokens = env.filter(|variable| variable.name == "SPARK_CONNECT_AUTHENTICATE_TOKEN");
        let source = tokens.next().unwrap().value_from.clone().unwrap().secret_key_ref.unwrap();
        let secrets = Api::<Secret>::namespaced(self.world.client.clone(), "red");
        let all = secrets.list(&ListParams::default()).await.unwrap();
        let secret = all.into_iter().find(|secret| secret.metadata.name.as_ref() == Some(&source.name)).unwrap();
        let owners = secret.metadata.owner_references.unwrap();
        assert_eq!(Some(&owners[0].uid), pod.metadata.uid.as_ref());
        String::from_utf8(secret.data.unwrap()[&source.key].0.clone()).unwrap()
    }

    /// Sets columns of a submission.
    pub(super) async fn set(&self, id: &str, columns: &str) {
        let statement = sqlx::AssertSqlSafe(format!("UPDATE submissions SET {columns} WHERE id = $1"));
        sqlx::query(statement).bind(id).execute(&self.world.pool).await.unwrap();
    }

    /// Sets columns of a session.
    pub(super) async fn of_session(&self, id: &str, columns: &str) {
        let statement = sqlx::AssertSqlSafe(format!("UPDATE connect_sessions SET {columns} WHERE submission_id = $1"));
        sqlx::query(statement).bind(id).execute(&self.world.pool).await.unwrap();
    }

    /// Takes the permission of shared sessions out of the access file, and waits until that has an effect.
    pub(super) async fn forbid_shared(&self) {
        std::fs::write(self.world.file.path(), TWO_TENANTS).unwrap();
        let _guard = self.world.follow_access_file();
        let access = &self.world.service.access;
        until("the access file is read", async || {
            access.current().access().tenant("red").is_some_and(|tenant| !tenant.has_shared_sessions)
        })
        .await;
    }

    /// Runs the sweeps of features until the guard is dropped.
    pub(super) fn sweep(&self) -> DropGuard {
        let stop = CancellationToken::new();
        let leadership = &self.world.service.leadership;
        tokio::spawn(leadership.clone().run_renewal(stop.clone()));
        tokio::spawn(leadership.clone().run_sweeps(stop.clone()));
        stop.drop_guard()
    }

    /// Begins a request of a client with a key, if it isn't empty.
    pub(super) async fn stream(&self, key: &str, id: &str, method: &str, body: &[u8]) -> Stream {
        let stream = TcpStream::connect(self.door).await.unwrap();
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let uri = format!("http://{}/spark.connect.SparkConnectService/{method}", self.door);
        let mut request = Request::post(uri).header("content-type", "application/grpc").header("te", "trailers");
        request = request.header("x-sparkgate-session", id).header("cookie", "a=b").header("grpc-timeout", "60S");
        request = request.header("x-forwarded-for", "192.0.2.1").header("user-agent", "test");
        if !key.is_empty() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        Stream(sender.send_request(request).await.unwrap())
    }

    /// Makes a request to its end.
    pub(super) async fn call(&self, key: &str, id: &str, method: &str, body: &[u8]) -> Called {
        let (head, body) = self.stream(key, id, method, body).await.0.into_parts();
        let collected = body.collect().await.map_err(|error| error.to_string())?;
        let trailers = collected.trailers().cloned().unwrap_or_default();
        Ok((head.headers, collected.to_bytes().to_vec(), trailers))
    }
}

/// A response that may have no end.
pub(super) struct Stream(Response<Incoming>);

impl Stream {
    /// Returns the next data.
    pub(super) async fn data(&mut self) -> Option<Vec<u8>> {
        self.0.frame().await?.ok()?.into_data().ok().map(|data| data.to_vec())
    }

    /// Returns whether its headers end it.
    pub(super) fn has_ended(&self) -> bool {
        self.0.body().is_end_stream()
    }

    /// Returns the trailers, with which it ends.
    pub(super) async fn trailers(&mut self) -> HeaderMap {
        self.0.frame().await.unwrap().unwrap().into_trailers().unwrap()
    }
}

/// Returns code and message of the status of a response: of its trailers, or of headers that are trailers, too.
pub(super) fn status(called: &Called) -> (String, String) {
    let (headers, _, trailers) = called.as_ref().unwrap();
    let of =
        |name: &str| trailers.get(name).or_else(|| headers.get(name)).map(|value| value.to_str().unwrap().to_owned());
    (of("grpc-status").unwrap(), of("grpc-message").unwrap_or_default())
}

/// Serves clients of sessions until the guard is dropped.
fn run(service: &Service, listener: TcpListener) -> DropGuard {
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, connect_listener(service.clone()), ServerSettings::default(), stop.clone()));
    stop.drop_guard()
}
