//! Sessions of Spark Connect: what the gateway adds to a request and to a large result, compared with the same requests straight to the
//! driver, and what 500 open sessions cost it. The drivers are one server of HTTP/2 in this process, which answers at once.

mod client;
mod server;

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::{client::Client, server::Driver};
use super::launch::prepared;
use crate::{
    bench::{Bench, Name},
    gateway::{Gateway, free_port},
    load::{clients::in_words, http::Connection, kubernetes},
    report::Report,
    samples::Samples,
    servers::{Database, Kubernetes},
};

/// Sessions that are open at once, each with a client that reads a stream.
const SESSIONS: usize = 500;
/// Seconds of small requests, and of open streams.
const SECONDS: usize = 10;
const CLIENTS: [usize; 2] = [1, 16];
/// Large results of a run, one after the other.
const RESULTS: usize = 4;
const NAMESPACE: &str = "default";
/// The sessions have to be ready in this time.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Default)]
struct Figures {
    /// Milliseconds of a small request, by the number of clients: straight to the driver, and through the gateway.
    small: [[Samples; 2]; CLIENTS.len()],
    /// CPU of the gateway for a small request.
    cpu: Samples,
    /// MB/s of a large result: straight to the driver, and through the gateway.
    large: [Samples; 2],
    large_memory: Samples,
    idle: Samples,
    ready: Samples,
    open: Samples,
    open_cpu: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Sessions, bench);
    let mut of = Figures::default();
    for _ in 0..bench.runs {
        let kubernetes = prepared(bench).await?;
        once(bench, &kubernetes, &mut of).await?;
    }
    for (count, [straight, through]) in CLIENTS.into_iter().zip(&of.small) {
        let clients = in_words(count);
        report.add(format!("small request, {clients}: straight to the driver, p50"), "ms", straight);
        report.add(format!("small request, {clients}: through the gateway, p50"), "ms", through);
    }
    report.add("small request: CPU of the gateway", "ms", &of.cpu);
    report.add("1 GB of result: straight to the driver", "MB/s", &of.large[0]);
    report.add("1 GB of result: through the gateway", "MB/s", &of.large[1]);
    report.add("1 GB of result: memory of the gateway, added", "MB", &of.large_memory);
    let sessions = bench.size(SESSIONS);
    report.add("memory without sessions", "MB", &of.idle);
    report.add(format!("memory with {sessions} sessions"), "MB", &of.ready);
    report.add(format!("memory with {sessions} open streams"), "MB", &of.open);
    report.add(format!("CPU with {sessions} open streams"), "% of a core", &of.open_cpu);
    report.publish(bench)
}

async fn once(bench: &Bench, kubernetes: &Kubernetes, of: &mut Figures) -> anyhow::Result<()> {
    let database = Database::create(bench).await?;
    let (directory, driver) = (tempfile::tempdir()?, Driver::start().await?);
    let door = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let sessions = bench.size(SESSIONS).to_string();
    let options = [
        ["--connect-listen", &door.to_string()],
        ["--connect-sessions-per-principal", &sessions],
        ["--connect-sessions-per-tenant", &sessions],
        ["--kept-log", "off"],
        ["--spark-summary-period", "off"],
    ];
    let kubeconfig = kubernetes.gateway_kubeconfig();
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, options.as_flattened()).await?;
    gateway.until_ready().await?;
    of.idle.push(gateway.process().memory()?);
    let ids = ready(&gateway, &kubernetes.client().await?, driver.address.port(), bench.size(SESSIONS)).await?;
    of.ready.push(gateway.process().memory()?);
    let seconds = Duration::from_secs(bench.size(SECONDS) as u64);

    let straight = Client::new(driver.address);
    let through = |id: &String| Client::of_session(door, id);
    for (count, small) in CLIENTS.into_iter().zip(&mut of.small) {
        small[0].push(small_requests(&vec![straight.clone(); count], seconds).await?.median());
        let clients: Vec<_> = ids.iter().take(count).map(through).collect();
        let cpu = gateway.process().cpu()?;
        let took = small_requests(&clients, seconds).await?;
        small[1].push(took.median());
        if count > 1 {
            of.cpu.push((gateway.process().cpu()? - cpu).as_secs_f64() * 1e3 / took.len() as f64);
        }
    }
    let before = gateway.process().memory()?;
    for _ in 0..bench.size(RESULTS) {
        of.large[0].push(large_result(&straight).await?);
        of.large[1].push(large_result(&through(&ids[0])).await?);
    }
    of.large_memory.push((gateway.process().memory()? - before).max(0.0));

    let mut streams = Vec::new();
    for id in &ids {
        streams.push(through(id).connect().await?.stream().await?);
    }
    let (cpu, begun) = (gateway.process().cpu()?, Instant::now());
    sleep(seconds).await;
    of.open.push(gateway.process().memory()?);
    of.open_cpu.push((gateway.process().cpu()? - cpu).as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0);
    drop((streams, gateway));
    database.drop_it().await
}

/// Opens sessions, plays the kubelet of their drivers, and waits until all are ready. Returns their ids.
async fn ready(gateway: &Gateway, client: &kubernetes::Client, port: u16, count: usize) -> anyhow::Result<Vec<String>> {
    let mut connection = Connection::open(gateway.address).await?;
    let mut ids = Vec::new();
    for n in 0..count {
        let properties = json!({
            "spark.kubernetes.namespace": NAMESPACE, "spark.kubernetes.container.image": "spark:4.3.0",
            "spark.connect.grpc.binding.port": port.to_string(),
        });
        let body = json!({"name": format!("s{n}"), "sparkVersion": "4.3.0", "sparkProperties": properties});
        let answer = connection.post("/v1/sessions", body.to_string().into()).await?;
        ensure!(answer.status == 201, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        let opened: Value = answer.json()?;
        ids.push(opened["id"].as_str().context("a session without an id")?.to_owned());
    }
    let begun = Instant::now();
    for id in &ids {
        while !is_ready(&mut connection, id).await? {
            ensure!(begun.elapsed() < PATIENCE, "the session {id} isn't ready after {PATIENCE:?}");
            run_pods(client).await?;
            sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(ids)
}

async fn is_ready(connection: &mut Connection, id: &str) -> anyhow::Result<bool> {
    let session: Value = connection.get(&format!("/v1/sessions/{id}")).await?.json()?;
    ensure!(session["state"] != "ENDED", "the session {id} has ended: {}", session["message"]);
    Ok(session["state"] == "READY")
}

/// Reports that each driver that waits runs at this machine's address.
async fn run_pods(client: &kubernetes::Client) -> anyhow::Result<()> {
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let all: Value = serde_json::from_slice(&client.get(&pods).await?)?;
    let container = json!({"name": "spark-kubernetes-driver", "image": "", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-11-21T12:00:00Z"}}});
    let patch = json!({"status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
        "containerStatuses": [container]}});
    for pod in all["items"].as_array().into_iter().flatten().filter(|pod| pod["status"]["phase"] == "Pending") {
        let name = pod["metadata"]["name"].as_str().context("a pod without a name")?;
        client.merge(&format!("{pods}/{name}/status"), patch.to_string()).await?;
    }
    Ok(())
}

/// Makes small requests, one after the other by each client. Returns the milliseconds of each.
async fn small_requests(clients: &[Client], time: Duration) -> anyhow::Result<Samples> {
    let begun = Instant::now();
    let all = clients.iter().map(async |client| -> anyhow::Result<Samples> {
        let (mut connection, mut took) = (client.connect().await?, Samples::default());
        while begun.elapsed() < time {
            let sent = Instant::now();
            connection.call("Small").await?;
            took.push(sent.elapsed().as_secs_f64() * 1e3);
        }
        Ok(took)
    });
    let all = try_join_all(all).await?;
    Ok(all.iter().flat_map(|one| one.values()).copied().collect())
}

/// Reads a gigabyte. Returns MB/s.
async fn large_result(client: &Client) -> anyhow::Result<f64> {
    let mut connection = client.connect().await?;
    let begun = Instant::now();
    let bytes = connection.call("Large").await?;
    Ok(bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())
}
