//! Everything that a tenant can do at once: long queues in three namespaces, webhooks with dead receivers, uploads that
//! send a drop each second, and readers that don't read.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use hyper::header::HeaderValue;
use serde_json::json;
use sparkgate_testing::request::request;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    bench::Bench,
    gateway::free_port,
    load::{http::Connection, kubernetes::Client},
    servers::{Database, rows},
};

/// The namespaces of the tenant.
pub(super) const NAMESPACES: [&str; 3] = ["team-a", "team-c", "team-d"];
/// Submissions in each of them.
const QUEUED: usize = 20_000;
/// Due deliveries, and the webhooks that they belong to.
const DELIVERIES: usize = 20_000;
const WEBHOOKS: usize = 50;
const UPLOADS: usize = 16;
/// Followers of the events since the beginning that read nothing, that read slowly, and followers of logs.
const READERS: [usize; 3] = [24, 24, 16];
/// Clients that submit at once.
const CLIENTS: usize = 64;
/// The drivers of its queues that are launched before this is measured.
const LAUNCHED: f64 = 300.0;
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause before a repeated request, and before a connection is opened again.
const PAUSE: Duration = Duration::from_millis(100);
/// The receive buffer of a reader, in bytes, so that it isn't the kernel that reads.
const BUFFER: u32 = 16 << 10;

pub(super) struct Noise {
    address: SocketAddr,
    credentials: HeaderValue,
    cluster: Client,
    open: [Arc<AtomicUsize>; 2],
    tasks: JoinSet<()>,
}

impl Noise {
    /// What there is of each kind of noise, in the order of [`Self::level`].
    pub(super) const LEVELS: [&str; 4] =
        ["its queued submissions", "its deliveries due to dead receivers", "its slow uploads", "its slow readers"];

    pub(super) fn new(address: SocketAddr, credentials: HeaderValue, cluster: Client) -> Self {
        Self { address, credentials, cluster, open: Default::default(), tasks: JoinSet::new() }
    }

    /// Fills the quotas of the namespaces. No controller counts their pods.
    pub(super) async fn fill_quotas(&self) -> anyhow::Result<()> {
        for namespace in NAMESPACES {
            let path = format!("/api/v1/namespaces/{namespace}/resourcequotas");
            let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"},
                "spec": {"hard": {"pods": "1"}}});
            self.cluster.post(&path, quota.to_string()).await?;
            let status = json!({"status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}});
            self.cluster.merge(&format!("{path}/full/status"), status.to_string()).await?;
        }
        Ok(())
    }

    /// Removes the quotas.
    pub(super) async fn lift_quotas(&self) -> anyhow::Result<()> {
        for namespace in NAMESPACES {
            self.cluster.delete(&format!("/api/v1/namespaces/{namespace}/resourcequotas/full")).await?;
        }
        Ok(())
    }

    /// Begins with everything; returns when it is in effect.
    pub(super) async fn begin(&mut self, bench: &Bench, database: &Database) -> anyhow::Result<()> {
        self.submit(bench.size(QUEUED) * NAMESPACES.len()).await?;
        self.fail_webhooks(bench.size(DELIVERIES), database).await?;
        let mut connection = database.connect().await?;
        // What its submissions cost while they are accepted is another figure.
        rows::vacuum(&mut connection).await?;
        sqlx::query("CHECKPOINT").execute(&mut connection).await?;
        let queued = "SELECT id FROM submissions WHERE state = 'QUEUED' ORDER BY number LIMIT $1";
        let queued = sqlx::query_scalar(queued).bind(i64::try_from(READERS[2])?);
        let queued: Vec<String> = queued.fetch_all(&mut connection).await?;
        ensure!(queued.len() == READERS[2], "nothing is queued");
        let key = self.credentials.to_str()?;
        let [uploads, readers] = &self.open;
        for number in 0..UPLOADS {
            let head = format!(
                "PUT /v1/files/{number:064x} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key}\r\n\
                 Content-Length: 1073741824\r\n\r\n"
            );
            self.tasks.spawn(for_ever(self.address, head, uploads.clone(), drip));
        }
        let get = |path: &str| {
            format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key}\r\nAccept: text/event-stream, */*\r\n\r\n"
            )
        };
        for _ in 0..READERS[0] {
            self.tasks.spawn(for_ever(self.address, get("/v1/events?after=0"), readers.clone(), ignore));
        }
        for _ in 0..READERS[1] {
            self.tasks.spawn(for_ever(self.address, get("/v1/events?after=0"), readers.clone(), sip));
        }
        for id in queued {
            let path = format!("/v1/submissions/{id}/logs?follow=true");
            self.tasks.spawn(for_ever(self.address, get(&path), readers.clone(), sip));
        }
        Ok(())
    }

    /// Submits so many jobs, in all of its namespaces.
    async fn submit(&self, jobs: usize) -> anyhow::Result<()> {
        let next = AtomicUsize::new(0);
        let client = async || -> anyhow::Result<()> {
            let mut connection = Connection::open(self.address).await?;
            loop {
                let n = next.fetch_add(1, Relaxed);
                if n >= jobs {
                    return Ok(());
                }
                let body = request(n, NAMESPACES[n % NAMESPACES.len()]);
                let mut status = 503;
                while status == 503 {
                    let (path, body) = ("/v1/submissions/create", body.clone());
                    let answer = connection.post_as(Some(&self.credentials), path, body).await?;
                    status = answer.status;
                    if status == 503 {
                        sleep(PAUSE).await;
                    }
                    ensure!(matches!(status, 200 | 503), "{status}: {}", String::from_utf8_lossy(&answer.body));
                }
            }
        };
        try_join_all((0..CLIENTS).map(|_| client())).await.map(drop)
    }

    /// Creates webhooks with due deliveries. Half of the receivers refuse connections, and half accept them and say nothing.
    async fn fail_webhooks(&mut self, deliveries: usize, database: &Database) -> anyhow::Result<()> {
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let ports = [free_port()?, silent.local_addr()?.port()];
        self.tasks.spawn(async move {
            let mut held = Vec::new();
            while let Ok((connection, _)) = silent.accept().await {
                held.push(connection);
            }
        });
        let mut connection = Connection::open(self.address).await?;
        for number in 0..WEBHOOKS {
            let url = format!("http://127.0.0.1:{}/{number}", ports[number % 2]);
            let body = json!({"url": url, "filter": {"states": ["LOST"]}}).to_string();
            let answer = connection.post_as(Some(&self.credentials), "/v1/webhooks", body.into()).await?;
            ensure!(answer.status == 201, "creating a webhook: {}", String::from_utf8_lossy(&answer.body));
        }
        let due = "WITH queued AS (
                INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, next_try_at, event)
                SELECT w.id, s.id, s.number + 1, now() - interval '1 hour', jsonb_build_object('sequence', s.number + 1,
                    'submissionId', s.id, 'attempt', 1, 'state', 'QUEUED', 'at', s.created_at, 'name', s.name,
                    'tenant', s.tenant, 'principal', s.principal, 'owner', s.owner, 'namespace', s.namespace,
                    'labels', s.labels, 'sparkVersion', s.spark_version)
                FROM webhooks w CROSS JOIN (
                    SELECT * FROM submissions WHERE namespace = $1 ORDER BY number LIMIT $2) s
                RETURNING webhook_id
            )
            INSERT INTO webhook_turns AS t (webhook_id, tenant, due_at)
            SELECT DISTINCT id, tenant, now() - interval '1 hour' FROM webhooks JOIN queued ON webhook_id = id
            ON CONFLICT (webhook_id) DO UPDATE SET due_at = excluded.due_at";
        let each = i64::try_from(deliveries / WEBHOOKS)?;
        let due = sqlx::query(due).bind(NAMESPACES[0]).bind(each);
        due.execute(&mut database.connect().await?).await.context("queueing deliveries")?;
        Ok(())
    }

    /// Waits until the launcher is busy with its queues, whose namespaces wait for a while after a denial.
    pub(super) async fn until_launched(&self, bench: &Bench, database: &Database) -> anyhow::Result<()> {
        let enough = (bench.size(QUEUED) * NAMESPACES.len()) as f64 - LAUNCHED;
        let begun = Instant::now();
        while self.level(database).await?[0] > enough {
            ensure!(begun.elapsed() < PATIENCE, "the neighbour's queues aren't launched after {PATIENCE:?}");
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Returns how much of everything there is now.
    pub(super) async fn level(&self, database: &Database) -> anyhow::Result<[f64; Self::LEVELS.len()]> {
        let mut connection = database.connect().await?;
        let count = "SELECT (SELECT count(*) FROM submissions WHERE state = 'QUEUED' AND namespace = ANY ($1)),
            (SELECT count(*) FROM webhook_deliveries WHERE status = 'pending')";
        let count = sqlx::query_as(count).bind(NAMESPACES.as_slice());
        let (queued, deliveries): (i64, i64) = count.fetch_one(&mut connection).await?;
        let [uploads, readers] = self.open.each_ref().map(|open| open.load(Relaxed) as f64);
        Ok([queued as f64, deliveries as f64, uploads, readers])
    }
}

/// Sends a request and does with its connection what `then` does, again and again.
async fn for_ever<F, D>(address: SocketAddr, head: String, open: Arc<AtomicUsize>, then: F)
where
    F: Fn(TcpStream) -> D,
    D: Future<Output = std::io::Result<()>>,
{
    loop {
        if let Ok(mut connection) = connect(address).await
            && connection.write_all(head.as_bytes()).await.is_ok()
        {
            open.fetch_add(1, Relaxed);
            let _ = then(connection).await;
            open.fetch_sub(1, Relaxed);
        }
        sleep(PAUSE).await;
    }
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(BUFFER)?;
    socket.connect(address).await
}

/// Sends a byte each second until the gateway answers.
async fn drip(mut connection: TcpStream) -> std::io::Result<()> {
    let mut answer = [0; 1024];
    loop {
        connection.write_all(b"x").await?;
        tokio::select! {
            () = sleep(Duration::from_secs(1)) => {}
            read = connection.read(&mut answer) => return read.map(drop),
        }
    }
}

/// Reads a kilobyte each second until the end.
async fn sip(mut connection: TcpStream) -> std::io::Result<()> {
    let mut part = [0; 1024];
    while connection.read(&mut part).await? > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Reads nothing, until the gateway closes the connection.
async fn ignore(connection: TcpStream) -> std::io::Result<()> {
    connection.ready(Interest::ERROR).await.map(drop)
}
