//! One of the servers is down for a while, and clients continue.

use std::{fmt, path::PathBuf, time::Duration};

use futures::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    clients::{Book, Clients},
    http::{NoReply, post},
    oracle::{Unseen, Verdict, judge},
    world::World,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Apiserver,
    Postgres,
}

#[derive(Debug)]
pub(crate) struct Outage {
    pub(crate) verdict: Verdict,
    /// The longest time that a client waited for a reply during the outage.
    pub(crate) longest_reply: Duration,
    /// From the server's return until every submission was launched.
    pub(crate) drained_after: Duration,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { rows, lost, wrong_outcomes, .. } = self.verdict;
        let (reply, drained) = (self.longest_reply.as_secs_f64(), self.drained_after.as_secs_f64());
        write!(f, "{rows} rows, {lost} lost, {wrong_outcomes} wrong, longest reply {reply:.2} s, ")?;
        write!(f, "all launched {drained:.1} s after its return")
    }
}

const PATIENCE: Duration = Duration::from_secs(90);

/// Runs an outage. Jobs are submitted evenly over its duration.
pub(crate) async fn play(program: PathBuf, seed: u64, server: Server, away: Duration, jobs: u32) -> Outage {
    let mut world = World::new(program, seed, 2, &[]).await;
    let clients = world.clients.clone();
    let servers = world.servers.both();
    let back = Instant::now() + away;
    let submits = clients.submit_all(jobs, away);
    let mut complaints = Vec::new();
    let mut longest_reply = Duration::ZERO;
    match server {
        Server::Apiserver => {
            servers.kubernetes.kill_apiserver();
            tokio::join!(submits, longest(&clients, back, &mut longest_reply));
            complaints.extend(put_off(&clients.book()));
            servers.kubernetes.ready().await;
        }
        Server::Postgres => {
            servers.postgres.kill();
            let outage = async {
                refusals(&clients, back, &mut longest_reply, &mut complaints).await;
                servers.postgres.ready().await;
            };
            tokio::join!(submits, outage);
        }
    }
    let returned = Instant::now();
    world.drain(PATIENCE).await;
    let drained_after = returned.elapsed();
    world.settle(PATIENCE).await;
    let mut verdict = judge(&mut world, Unseen::Never).await;
    verdict.violations.append(&mut complaints);
    Outage { verdict, longest_reply, drained_after }
}

/// Kills the API server with `queued` submissions in the queue and restarts it, several times: for a moment it knows no
/// rights.
pub(crate) async fn restarts(program: PathBuf, seed: u64, rounds: usize, queued: u32) -> Verdict {
    let mut world = World::new(program, seed, 2, &[]).await;
    for _ in 0..rounds {
        world.servers.both().kubernetes.kill_apiserver();
        join_all((0..queued).map(|_| world.clients.submit())).await;
        world.servers.both().kubernetes.ready().await;
        world.drain(PATIENCE).await;
    }
    world.settle(PATIENCE).await;
    judge(&mut world, Unseen::Never).await
}

/// Checks that no create was refused while the API server was down.
fn put_off(book: &Book) -> Option<String> {
    let (put_off, in_doubt) = (book.put_off, book.in_doubt.len());
    let any = put_off + in_doubt > 0;
    any.then(|| format!("creates without the API server: {put_off} were put off, {in_doubt} are in doubt"))
}

/// Measures the longest time until a request for an unknown submission is answered.
async fn longest(clients: &Clients, end: Instant, longest: &mut Duration) {
    while Instant::now() < end {
        let asked = Instant::now();
        let _ = post(&clients.gateways[0], "/v1/submissions/kill/unknown", "", Duration::from_secs(10)).await;
        *longest = asked.elapsed().max(*longest);
        sleep(Duration::from_millis(200)).await;
    }
}

/// Checks that every create is answered with 503, `Retry-After` and a reason.
async fn refusals(clients: &Clients, end: Instant, longest: &mut Duration, complaints: &mut Vec<String>) {
    let body = json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appArgs": [],
        "appResource": "local:///opt/app.jar", "mainClass": "Main", "environmentVariables": {},
        "sparkProperties": {"spark.kubernetes.namespace": clients.namespace, "spark.kubernetes.container.image": "spark"}});
    while Instant::now() + Duration::from_secs(2) < end {
        for gateway in &clients.gateways {
            let asked = Instant::now();
            match post(gateway, "/v1/submissions/create", &body.to_string(), Duration::from_secs(10)).await {
                Ok(reply) if reply.status == 503 && reply.retry_after => {}
                Err(NoReply::NotSent) => complaints.push("a gateway ended with its database".to_owned()),
                other if complaints.len() < 3 => complaints.push(format!("a create without a database: {other:?}")),
                _ => {}
            }
            *longest = asked.elapsed().max(*longest);
        }
        sleep(Duration::from_millis(300)).await;
    }
}
