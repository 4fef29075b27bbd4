//! The environment of a run: a namespace or those of tenants, a database and some replicas.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use kube::Client;
use sparkgate_testing::{
    dice::Dice,
    guard::guard,
    object_store::{ObjectStore, StoreFault},
    process::{free_port, until},
    webhook::{Conduct, Webhook},
};
use sqlx::PgPool;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    adversary::Deeds,
    clients::Clients,
    history::History,
    http::Gateway,
    kubelet::{Kubelet, logs::NodeLogs},
    oracle::stored::{FILES, LOGS},
    queues::Queues,
    replica::Replica,
    servers::{Borrowed, borrow, grant},
    tenants::{self, Neighbours, Tenant},
    truth::Truth,
};

/// What a world has besides a namespace and its replicas.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Setting {
    /// Tenants, some of which are bad neighbours.
    pub(crate) tenants: bool,
    /// An object store for files and logs, and a node whose kubelet has the logs. It needs tenants.
    pub(crate) objects: bool,
    /// Submissions that ended before the run.
    pub(crate) old: u32,
    /// Whether the tenants have queues.
    pub(crate) queues: bool,
    /// Whether some jobs are sessions of Spark Connect.
    pub(crate) sessions: bool,
    /// Whether some jobs get more memory after it ran out, or are restarted.
    pub(crate) restarts: bool,
}

/// The idle timeout of sessions, in seconds: shorter than the gateway permits.
pub(crate) const IDLE: i32 = 2;

pub(crate) struct World {
    pub(crate) seed: u64,
    /// The namespace at which the storm is aimed; the name of the database.
    pub(crate) namespace: String,
    /// All namespaces of drivers.
    pub(crate) namespaces: Vec<String>,
    pub(crate) history: History,
    pub(crate) neighbours: Option<Neighbours>,
    pub(crate) queues: Option<Arc<Queues>>,
    pub(crate) replicas: Vec<Arc<Replica>>,
    pub(crate) clients: Clients,
    pub(crate) truth: Arc<Truth>,
    pub(crate) objects: Option<ObjectStore>,
    /// What the drivers wrote.
    pub(crate) logs: Arc<NodeLogs>,
    /// The actions of others in the namespace.
    pub(crate) deeds: Arc<Mutex<Deeds>>,
    /// Direct connections to both servers, for the oracle.
    pub(crate) pool: PgPool,
    pub(crate) client: Client,
    /// Of the namespace.
    pub(crate) webhook: Webhook,
    /// While true, no driver ends by itself.
    pub(crate) hold: watch::Sender<bool>,
    tasks: JoinSet<()>,
    _kubelet: Option<AbortOnDropHandle<()>>,
    pub(crate) servers: Borrowed,
}

impl World {
    /// Starts everything; returns when the replicas are ready. `options` go to each `sparkgate serve`.
    pub(crate) async fn new(program: PathBuf, seed: u64, replicas: usize, options: &[&str]) -> Self {
        Self::set(program, seed, replicas, options, Setting::default()).await
    }

    /// Does the same in this setting.
    pub(crate) async fn set(program: PathBuf, seed: u64, replicas: usize, options: &[&str], setting: Setting) -> Self {
        let mut servers = borrow().await;
        let namespace = format!("crash-{}", uuid::Uuid::new_v4().simple());
        let client = servers.both().kubernetes.client().await;
        let namespaces: Vec<String> = if setting.tenants {
            Tenant::ALL.into_iter().map(|tenant| tenant.namespace(&namespace)).collect()
        } else {
            vec![namespace.clone()]
        };
        for namespace in &namespaces {
            servers.both().kubernetes.create_namespace(namespace).await;
        }
        let webhook = Webhook::start(client.clone(), &namespace).await;
        let pool = servers.both().postgres.create_database(&namespace).await;
        servers.both().postgres.migrate(&program, &namespace, &pool).await;
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        options.extend(["--namespaces".to_owned(), namespaces.join(",")]);
        let (mut credentials, mut neighbours) = (None, None);
        let queues = (setting.tenants && setting.queues).then(|| Queues::begin(&namespace));
        if setting.tenants {
            let file = guard().directory().join(format!("{namespace}.access.yaml"));
            let file =
                if queues.is_some() { file.display().to_string() } else { tenants::access_file(&namespace, None) };
            options.extend(["--access-file".to_owned(), file]);
            let postgres = &servers.both().postgres;
            let url = postgres.url(&namespace, postgres.port).unwrap();
            credentials = Some(tenants::credentials(&program, &url).await);
            neighbours = Some(Neighbours::begin(&client, &namespace).await);
        }
        if setting.sessions {
            let most = ["--connect-sessions-per-principal=100000", "--connect-sessions-per-tenant=100000"];
            options.extend(most.map(str::to_owned));
        }
        let mut history = History::NONE;
        if setting.old > 0 {
            let tenant = if setting.tenants { Tenant::Struck.name() } else { "default" };
            history = History::write(&pool, &namespace, tenant, setting.old.into()).await;
        }

        let logs = Arc::<NodeLogs>::default();
        let (mut objects, mut kubelet, mut environment) = (None, None, Vec::new());
        if setting.objects {
            let (port, served) = logs.serve().await;
            servers.both().kubernetes.register_node(port).await;
            kubelet = Some(served);
            let store = ObjectStore::start().await;
            environment = store.environment();
            objects = Some(store);
            // Most of a log is in the store, and its end in the database, too.
            let urls = [format!("--files-url=s3://{FILES}/storm"), format!("--logs-url=s3://{LOGS}/storm")];
            options.extend(urls);
            options.extend(["--files-base-url=http://127.0.0.1:6066", "--kept-log=1KiB"].map(str::to_owned));
        }

        let mut tasks = JoinSet::new();
        let mut started = Vec::new();
        for number in 0..replicas {
            let (program, environment) = (program.clone(), environment.clone());
            let mut options = options.clone();
            if setting.sessions {
                options.push(format!("--connect-listen=127.0.0.1:{}", free_port()));
            }
            let replica = Replica::new(program, number, &namespace, &options, servers.both(), seed, environment).await;
            let replica = Arc::new(replica);
            replica.start();
            let kept = replica.clone();
            tasks.spawn(async move { kept.keep_up(Dice::new(seed, &format!("restarts {number}"))).await });
            started.push(replica);
        }
        let (hold, held) = watch::channel(false);
        let truth = Arc::<Truth>::default();
        for namespace in &namespaces {
            let kubelet = Kubelet {
                client: servers.both().kubernetes.client().await,
                namespace: namespace.clone(),
                seed,
                truth: truth.clone(),
                logs: logs.clone(),
                hold: held.clone(),
            };
            tasks.spawn(kubelet.play());
        }
        let gateway = |replica: &Arc<Replica>| Gateway { address: replica.address, credentials: credentials.clone() };
        let gateways = started.iter().map(gateway).collect();
        let mut clients = Clients::new(seed, namespace.clone(), gateways, setting.tenants);
        (clients.sessions, clients.restarts) = (setting.sessions, setting.restarts);
        tasks.spawn(hurry(pool.clone()));
        if let Some(queues) = &queues {
            tasks.spawn(queues.clone().watch(pool.clone(), truth.clone()));
        }
        let world = Self {
            seed,
            namespace,
            namespaces,
            history,
            neighbours,
            queues,
            replicas: started,
            clients,
            truth,
            objects,
            logs,
            deeds: Arc::default(),
            pool,
            client,
            webhook,
            hold,
            tasks,
            _kubelet: kubelet,
            servers,
        };
        world.all_up().await;
        world
    }

    /// Waits until every replica accepts requests.
    pub(crate) async fn all_up(&self) {
        for replica in &self.replicas {
            until("a replica is ready", Duration::from_secs(90), async || ready(replica).await).await;
        }
    }

    /// Leads the replicas and the oracle to the server that has replaced Postgres.
    pub(crate) fn follow_postgres(&mut self) {
        let postgres = &self.servers.both().postgres;
        self.pool = postgres.pool(&self.namespace);
        self.tasks.spawn(hurry(self.pool.clone()));
        for replica in &self.replicas {
            replica.database.redirect((std::net::Ipv4Addr::LOCALHOST, postgres.port).into());
        }
    }

    /// Ends all faults, and starts what isn't running.
    pub(crate) async fn calm(&mut self) {
        self.webhook.set(Conduct::Allow);
        if let Some(objects) = &self.objects {
            objects.set(StoreFault::None);
        }
        let servers = self.servers.both();
        servers.postgres.ready().await;
        servers.kubernetes.ready().await;
        grant(&self.client, &self.namespace).await;
        if let Some(neighbours) = &self.neighbours {
            neighbours.calm().await;
        }
        for replica in &self.replicas {
            replica.calm();
            replica.start();
        }
        self.all_up().await;
    }

    /// Waits until all submissions have ended. The oracle reports those that haven't.
    pub(crate) async fn settle(&self, limit: Duration) {
        self.none_is_in("'QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING'", limit).await;
    }

    /// Waits until the launchers have nothing left to do.
    pub(crate) async fn drain(&self, limit: Duration) {
        self.none_is_in("'QUEUED', 'LAUNCHING', 'KILLING'", limit).await;
    }

    async fn none_is_in(&self, states: &str, limit: Duration) {
        let count = format!("SELECT count(*) FROM submissions WHERE state IN ({states})");
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            let left = sqlx::query_scalar(sqlx::AssertSqlSafe(count.clone())).fetch_one(&self.pool).await;
            if left.is_ok_and(|left: i64| left == 0) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Ends the pauses before retries, and shortens the idle timeouts of sessions, which are longer than a run. Sessions count as reached,
/// because their drivers have no servers.
async fn hurry(pool: PgPool) {
    let idle = format!(
        "UPDATE connect_sessions SET idle_timeout = {IDLE}, ready_at = coalesce(ready_at, clock_timestamp())
         WHERE idle_timeout <> {IDLE}"
    );
    let due = "UPDATE submissions SET not_before = NULL
               WHERE state = 'QUEUED' AND attempt > 1 AND failed_tries = 0 AND not_before > now()";
    loop {
        sleep(Duration::from_millis(500)).await;
        // The servers may be down.
        let _ = sqlx::query(due).execute(&pool).await;
        let _ = sqlx::query(sqlx::AssertSqlSafe(idle.clone())).execute(&pool).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for replica in &self.replicas {
            replica.down();
        }
    }
}

async fn ready(replica: &Replica) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let Ok(mut stream) = tokio::net::TcpStream::connect(replica.address).await else { return false };
    let request = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut answer = String::new();
    let asked = async {
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_string(&mut answer).await
    };
    matches!(tokio::time::timeout(Duration::from_secs(5), asked).await, Ok(Ok(_))) && answer.contains(" 200 ")
}
