//! One submission, from POST to outcome, with a gateway, a database and a namespace of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Body, http::Request};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use sparkgate::{
    api::{HttpSettings, router},
    cluster::Cluster,
    service::{CleanUpSettings, Error, Service, Setup, SparkSettings, Submitter, WebhookSettings},
    store::{DatabaseSettings, Store},
};
use sparkgate_testing::receiver::{Answer, Receiver};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::in_memory::settings;
use crate::lost_replies::{
    calls::{Call, Calls},
    client,
    kubelet::Kubelet,
    postgres::Proxy,
    site::Site,
};

const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first attempt fails, the second one succeeds.
    Retried,
    /// It is killed while it runs.
    Killed,
}

impl Kind {
    fn exit_codes(self) -> &'static [i32] {
        match self {
            Self::Retried => &[1, 0],
            Self::Killed => &[],
        }
    }

    /// Returns the attempts and states of a whole life.
    fn events(self) -> &'static [(i32, &'static str)] {
        const RETRIED: &[(i32, &str)] = &[
            (1, "QUEUED"),
            (1, "LAUNCHING"),
            (1, "PENDING"),
            (1, "RUNNING"),
            (1, "FAILED"),
            (2, "QUEUED"),
            (2, "LAUNCHING"),
            (2, "PENDING"),
            (2, "RUNNING"),
            (2, "FINISHED"),
        ];
        const KILLED: &[(i32, &str)] =
            &[(1, "QUEUED"), (1, "LAUNCHING"), (1, "PENDING"), (1, "RUNNING"), (1, "KILLING"), (1, "KILLED")];
        match self {
            Self::Retried => RETRIED,
            Self::Killed => KILLED,
        }
    }
}

/// A life that ended well.
#[derive(Debug)]
pub(crate) struct Lived {
    /// How often each call was made.
    pub(crate) made: BTreeMap<String, usize>,
    /// The reply that was to be lost was lost.
    pub(crate) lost: bool,
}

/// Everything that is around one submission.
struct Life {
    kind: Kind,
    calls: Arc<Calls>,
    pool: PgPool,
    router: Router,
    receiver: Receiver,
    pods: Api<Pod>,
    started: Arc<Mutex<BTreeMap<i32, usize>>>,
    _proxy: Proxy,
    _loops: JoinSet<()>,
}

/// Plays a life in which this reply is lost.
///
/// # Errors
/// What is wrong at its end.
pub(crate) async fn play(site: &Site, kind: Kind, lose: Option<&Call>) -> Result<Lived, String> {
    let database = site.database().await;
    let life = Life::begin(site, &database, kind, lose).await;
    let lived = life.live().await;
    let pool = life.pool.clone();
    drop(life);
    pool.close().await;
    site.drop_database(&database).await;
    lived
}

impl Life {
    async fn begin(site: &Site, database: &str, kind: Kind, lose: Option<&Call>) -> Self {
        let calls = Arc::new(Calls::losing(lose.cloned()));
        let proxy = Proxy::start(site.postgres, calls.clone()).await;
        let namespace = format!("life-{}", uuid::Uuid::new_v4().simple());
        site.kubernetes.create_namespace(&namespace).await;
        let admin = site.kubernetes.admin().await;
        let client = client::losing(site.kubernetes.gateway().await, calls.clone());
        let cluster = Cluster::new(client, std::slice::from_ref(&namespace));
        let url = site.url(proxy.address, database);
        // On a busy machine a connection may come too late; `serve` tries again, too.
        let connection = DatabaseSettings { url, max_connections: 8 };
        let store = loop {
            match Store::connect(&connection).await {
                Err(error) if error.may_pass() => {}
                connected => break connected.unwrap(),
            }
        };
        let defaults = BTreeMap::from([("spark.kubernetes.container.image".to_owned(), "spark:4.3.0".to_owned())]);
        let version = "4.3.0".parse().unwrap();
        let spark = SparkSettings::new(version, defaults, Submitter::default(), "tester".to_owned());
        let networks = vec!["127.0.0.0/8".parse().unwrap()];
        let webhooks = WebhookSettings { networks, http: true, ..WebhookSettings::default() };
        let service = loop {
            let setup = Setup { webhooks: webhooks.clone(), ..settings(spark.clone()).into() };
            match Service::new(store.clone(), cluster.clone(), setup).await {
                Err(Error::Unavailable(_)) => {}
                started => break started.unwrap(),
            }
        };
        let stop = CancellationToken::new();
        let mut loops = JoinSet::new();
        loops.spawn(service.leadership.clone().run_renewal(stop.clone()));
        let keep = CleanUpSettings { finished_pod_ttl: None, retention: None };
        for (_, each) in service.loops(keep, &stop) {
            loops.spawn(each);
        }
        let pool = PgPoolOptions::new().max_connections(3).connect(&site.url(site.postgres, database)).await.unwrap();
        loops.spawn(hurry(pool.clone()));
        let started = Arc::new(Mutex::default());
        let kubelet = Kubelet {
            client: admin.clone(),
            namespace: namespace.clone(),
            pool: pool.clone(),
            exit_codes: kind.exit_codes(),
        };
        let counts: Arc<Mutex<BTreeMap<i32, usize>>> = Arc::clone(&started);
        loops.spawn(async move { kubelet.play(&counts).await });
        let receiver = Receiver::start(|_, _| Answer::Status(200)).await;
        let pods = Api::namespaced(admin, &namespace);
        let router = router(service, HttpSettings::default()).unwrap();
        Self { kind, calls, pool, router, receiver, pods, started, _proxy: proxy, _loops: loops }
    }

    async fn live(&self) -> Result<Lived, String> {
        self.until_done("POST", "/v1/webhooks", Some(json!({"url": self.receiver.url("/")}))).await;
        self.calls.begin();
        let request = json!({"appResource": "local:///app.jar", "mainClass": "org.example.Main", "name": "life",
            "sparkProperties": {"spark.kubernetes.namespace": self.namespace()}, "maxRetries": {"application": 1}});
        let submission = self.until_done("POST", "/v1/submissions", Some(request)).await;
        let id = submission["id"].as_str().unwrap().to_owned();
        if self.kind == Kind::Killed {
            self.until_row(&id, "state = 'RUNNING'").await;
            self.until_done("DELETE", &format!("/v1/submissions/{id}"), None).await;
        }
        let ended = "finished_at IS NOT NULL AND state NOT IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')";
        self.until_row(&id, ended).await;
        self.nothing_stays(&id).await;
        let wrong = self.wrong(&id).await;
        if wrong.is_empty() {
            Ok(Lived { made: self.calls.all(), lost: self.calls.is_lost() })
        } else {
            Err(wrong.join("; "))
        }
    }

    fn namespace(&self) -> String {
        self.pods.namespace().unwrap_or_default().to_owned()
    }

    /// Sends a request, as a client that doesn't give up: the idempotency key makes that safe.
    async fn until_done(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        loop {
            let request = Request::builder().method(method).uri(path).header("host", "gateway");
            let request = request.header("content-type", "application/json").header("idempotency-key", "\"life\"");
            let body = body.as_ref().map_or_else(Body::empty, |body| Body::from(body.to_string()));
            let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
            let status = response.status().as_u16();
            let text = response.into_body().collect().await.unwrap().to_bytes();
            match status {
                200..300 => return serde_json::from_slice(&text).unwrap_or_default(),
                500 | 503 => sleep(POLL).await,
                _ => panic!("{method} {path}: {status} {}", String::from_utf8_lossy(&text)),
            }
        }
    }

    async fn until_row(&self, id: &str, so: &str) {
        let statement = format!("SELECT {so} FROM submissions WHERE id = $1");
        loop {
            let row = sqlx::query_scalar(sqlx::AssertSqlSafe(statement.clone())).bind(id);
            if row.fetch_one(&self.pool).await.unwrap() {
                return;
            }
            sleep(POLL).await;
        }
    }

    /// Waits until no pod is held, no claim is left, and each event has its number and was sent to the webhook.
    async fn nothing_stays(&self, id: &str) {
        loop {
            let pods = self.pods.list(&ListParams::default()).await.unwrap().items;
            let held = pods.iter().any(|pod| pod.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty()));
            let numbers = self.numbers(id).await;
            let sent: BTreeSet<i64> = self.receiver.received().iter().map(|message| message.change().1).collect();
            if !held && numbers.iter().all(|number| number.is_some_and(|number| sent.contains(&number))) {
                return;
            }
            sleep(POLL).await;
        }
    }

    async fn numbers(&self, id: &str) -> Vec<Option<i64>> {
        let events = "SELECT sequence FROM submission_events WHERE submission_id = $1 ORDER BY id";
        sqlx::query_scalar(events).bind(id).fetch_all(&self.pool).await.unwrap()
    }

    async fn wrong(&self, id: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&self.pool).await.unwrap();
        if rows != 1 {
            wrong.push(format!("one request made {rows} submissions"));
        }
        let events = "SELECT attempt, state FROM submission_events WHERE submission_id = $1 ORDER BY id";
        let events: Vec<(i32, String)> = sqlx::query_as(events).bind(id).fetch_all(&self.pool).await.unwrap();
        if !is_life(&events, self.kind.events()) {
            wrong.push(format!("its events are {events:?}"));
        }
        let numbers: Vec<i64> = self.numbers(id).await.into_iter().flatten().collect();
        if !numbers.is_sorted_by(|before, after| before < after) {
            wrong.push(format!("its events are numbered {numbers:?}"));
        }
        // At least once, and a later change never before an earlier one.
        let mut seen = BTreeSet::new();
        let first: Vec<i64> = self.receiver.received().iter().map(|message| message.change().1).collect();
        let first: Vec<i64> = first.into_iter().filter(|number| seen.insert(*number)).collect();
        if first != numbers {
            wrong.push(format!("the webhook got {first:?} of {numbers:?}"));
        }
        let expected = self.kind.events().last().map_or(1, |(attempt, _)| *attempt);
        let each: BTreeMap<i32, usize> = (1..=expected).map(|attempt| (attempt, 1)).collect();
        let started = self.started.lock().unwrap().clone();
        if started != each {
            wrong.push(format!("drivers started, by attempt: {started:?}"));
        }
        let created = self.calls.pods();
        if created.len() != each.len() || created.values().any(|times| *times != 1) {
            wrong.push(format!("pods created: {created:?}"));
        }
        let codes: Vec<Option<i32>> = sqlx::query_scalar(
            "SELECT exit_code FROM attempts WHERE submission_id = $1
             UNION ALL SELECT exit_code FROM submissions WHERE id = $1",
        )
        .bind(id)
        .fetch_all(&self.pool)
        .await
        .unwrap();
        let true_codes = match self.kind {
            Kind::Retried => vec![Some(1), Some(0)],
            Kind::Killed => vec![Some(143)],
        };
        if codes != true_codes {
            wrong.push(format!("exit codes {codes:?}"));
        }
        wrong
    }
}

/// Returns whether these are the events of a life. A state may be skipped if the next one is seen first.
fn is_life(events: &[(i32, String)], whole: &[(i32, &str)]) -> bool {
    let mut left = events.iter();
    let mut next = left.next();
    for (attempt, state) in whole {
        match next {
            Some((of, is)) if of == attempt && is == state => next = left.next(),
            _ if *state == "PENDING" => {}
            _ => return false,
        }
    }
    next.is_none()
}

/// Ends the pauses before retries, which are longer than a test.
async fn hurry(pool: PgPool) {
    let due = "UPDATE submissions SET not_before = NULL
               WHERE not_before > now() AND (state = 'KILLING' OR attempt > 1 AND failed_tries = 0)";
    loop {
        sleep(POLL * 3).await;
        let _ = sqlx::query(due).execute(&pool).await;
    }
}
