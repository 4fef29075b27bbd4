//! Replicas of the gateway on one database, each with a port of its own. Their cluster is an in-memory one without a
//! kubelet or scheduler: a submission stays queued until it is killed.

use std::{net::SocketAddr, time::Duration};

use sparkgate::{
    api::{HttpSettings, router},
    server::{ServerSettings, serve},
    service::{Service, Settings},
    spark::{CreateSubmissionRequest, SparkVersion},
    store::Store,
    submission::SubmissionId,
};
use sqlx::PgPool;
use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::in_memory;

pub(crate) struct Replica {
    pub(crate) service: Service,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Replica {
    pub(crate) async fn start(pool: PgPool) -> Self {
        Self::with(pool, HttpSettings::default().max_subscribers).await
    }

    pub(crate) async fn with(pool: PgPool, max_subscribers: usize) -> Self {
        let settings = Settings { kept_log: 0, ..in_memory::settings(in_memory::spark(SparkVersion::V4_3)) };
        let service = Service::new(Store::new(pool), in_memory::cluster(), settings).await.unwrap();
        let listener = listen();
        let address = listener.local_addr().unwrap();
        let http = HttpSettings { max_subscribers, ..HttpSettings::default() };
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(service.events.clone().run(stop.clone()));
        let router = router(service.clone(), http).unwrap();
        tasks.spawn(serve(listener, router, ServerSettings::default(), stop.clone()));
        Self { service, address, stop, tasks }
    }

    /// Shuts down as after a signal. Open streams don't delay it.
    pub(crate) async fn end(mut self) {
        self.service.health.drain();
        self.stop.cancel();
        let ended = timeout(Duration::from_secs(20), async { while self.tasks.join_next().await.is_some() {} }).await;
        assert!(ended.is_ok(), "open streams delay the shutdown");
    }

    pub(crate) async fn submit(&self) -> SubmissionId {
        let request = CreateSubmissionRequest {
            client_spark_version: "4.3.0".to_owned(),
            app_resource: "local:///opt/app.jar".to_owned(),
            main_class: "org.example.Main".to_owned(),
            ..CreateSubmissionRequest::default()
        };
        self.service.submissions.create(&self.service.anonymous(), request).await.unwrap()
    }
}

/// Listens with small buffers, so that a client that doesn't read soon blocks writes.
fn listen() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(8 << 10).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(1024).unwrap()
}

/// Writes events of the queued submission `id` as another process would, each with a message of `length` letters.
pub(crate) async fn write_events(pool: &PgPool, id: &SubmissionId, count: i32, length: i32) {
    sqlx::query(
        "INSERT INTO submission_events (submission_id, attempt, state, message)
         SELECT $1, 1, 'QUEUED', repeat('x', $3) FROM generate_series(1, $2)",
    )
    .bind(id.as_str())
    .bind(count)
    .bind(length)
    .execute(pool)
    .await
    .unwrap();
}

/// Waits until all events have numbers; returns the highest.
pub(crate) async fn all_numbered(pool: &PgPool) -> i64 {
    // A transaction of another test on the same server may delay them: on a busy machine for minutes.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(300);
    loop {
        let left = "SELECT last, (SELECT count(*) FROM submission_events WHERE sequence IS NULL) FROM event_sequence";
        let (last, left): (i64, i64) = sqlx::query_as(left).fetch_one(pool).await.unwrap();
        if left == 0 {
            return last;
        }
        assert!(tokio::time::Instant::now() < deadline, "{left} events have no numbers");
    }
}
