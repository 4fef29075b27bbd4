//! A client: it creates one job until that is accepted, reads it, and may kill it.

use std::{io::Write, time::Duration};

use fastrand::Rng;
use reqwest::Method;
use tokio::time::{Instant, sleep};

use super::{gateway::Gateway, record::Recorder};
use crate::history::{Act, Answer, Kept, is_end};

/// One in so many creates is sent to two gateways at once, and one in so many is repeated although it was accepted.
const AT_ONCE: u64 = 4;
const REPEATED: u64 = 4;
/// One in so many submissions is killed.
const KILLED: u64 = 5;
/// The most reads of one submission while it lives.
const READS: u64 = 12;

pub(super) struct Client<W> {
    pub(super) gateways: Vec<Gateway>,
    pub(super) job: u32,
    pub(super) key: String,
    pub(super) request: String,
    pub(super) random: Rng,
    pub(super) recorder: Recorder<W>,
}

impl<W: Write + Send + 'static> Client<W> {
    pub(super) async fn play(mut self, patience: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        let Some(id) = self.submit(deadline).await? else { return Ok(()) };
        if self.one_in(REPEATED) {
            self.creating().await?;
        }
        let killed_after = self.one_in(KILLED).then(|| self.random.u64(..READS));
        for nth in 0..READS {
            if killed_after == Some(nth) {
                self.kill(&id, deadline).await?;
            }
            if self.read(&id).await?.document().is_some_and(|document| is_end(&document.state)) {
                break;
            }
            self.pause(10, 200 << nth.min(6)).await;
        }
        self.read(&id).await.map(drop)
    }

    /// Creates the job until a reply says that it is kept, or that the request itself is refused. The key makes a repetition safe.
    async fn submit(&mut self, deadline: Instant) -> anyhow::Result<Option<String>> {
        loop {
            let answer = if self.one_in(AT_ONCE) {
                let (one, other) = (self.creating(), self.creating());
                let (one, other) = tokio::join!(one, other);
                let (one, other) = (one?, other?);
                if one.kept() == Kept::Yes { one } else { other }
            } else {
                self.creating().await?
            };
            if let Some(document) = answer.document() {
                return Ok(Some(document.id.clone()));
            }
            let is_refused = matches!(&answer, Answer::Reply(reply) if matches!(reply.status, 400..429));
            if is_refused || Instant::now() > deadline {
                return Ok(None);
            }
            self.pause(200, 2000).await;
        }
    }

    /// Prepares a create at any gateway.
    fn creating(&mut self) -> impl Future<Output = anyhow::Result<Answer>> + use<W> {
        let (gateway, recorder) = (self.gateway(), self.recorder.clone());
        let (job, key, body) = (self.job, self.key.clone(), self.request.clone());
        async move {
            let request = gateway.creating("", body).header("Idempotency-Key", key);
            recorder.call(Act::Create { job }, gateway.call(request)).await
        }
    }

    async fn kill(&mut self, id: &str, deadline: Instant) -> anyhow::Result<()> {
        while Instant::now() < deadline {
            let gateway = self.gateway();
            let request = gateway.request(Method::DELETE, &format!("/v1/submissions/{id}"));
            let answer = self.recorder.call(Act::Kill { id: id.to_owned() }, gateway.call(request)).await?;
            if answer.kept() == Kept::Yes {
                return Ok(());
            }
            self.pause(200, 2000).await;
        }
        Ok(())
    }

    async fn read(&mut self, id: &str) -> anyhow::Result<Answer> {
        let gateway = self.gateway();
        let request = gateway.request(Method::GET, &format!("/v1/submissions/{id}"));
        self.recorder.call(Act::Read { id: id.to_owned() }, gateway.call(request)).await
    }

    fn gateway(&mut self) -> Gateway {
        // There is at least one.
        self.gateways[self.random.usize(..self.gateways.len())].clone()
    }

    /// Returns true once in `n` calls on average.
    fn one_in(&mut self, n: u64) -> bool {
        self.random.u64(..n) == 0
    }

    /// Pauses between two numbers of milliseconds.
    async fn pause(&mut self, from: u64, to: u64) {
        sleep(Duration::from_millis(self.random.u64(from..=to))).await;
    }
}
