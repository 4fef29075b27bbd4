//! What the watch sees becomes state.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use futures::{StreamExt, stream};
use tokio::time::sleep;

use super::{
    Error, Gateway,
    error::chain,
    perform::{Stopped, Subject},
};
use crate::{
    cluster::{PodKey, Seen},
    store::Live,
    submission::{
        Observation, SubmissionId,
        engine::{Follow, Machine, Row, Settled},
    },
};

/// Submissions whose pods are taken in at once; what is seen of one is taken in in order.
const AT_ONCE: usize = 16;
/// How often a pod's own trouble is tried before it is left to the next list.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

impl Gateway {
    /// Takes in what the watch of `namespace` (`None`: of all) told, in its order, and again until it is taken: while the
    /// database or the cluster is away everything waits, because what was seen isn't shown a second time. Taking a thing
    /// twice does no harm, so this may be dropped at any time.
    pub async fn take_in(&self, namespace: Option<&str>, told: impl IntoIterator<Item = Seen>) {
        let mut drivers: HashMap<SubmissionId, Vec<Observation>> = HashMap::new();
        for seen in told {
            match seen {
                Seen::Driver(pod) => drivers.entry(pod.submission.clone()).or_default().push(*pod),
                Seen::Executor(pod) => self.executors.note(namespace, &pod),
                Seen::Listed { drivers: listed, executors } => {
                    self.take_in_drivers(std::mem::take(&mut drivers)).await;
                    self.compare(namespace, &listed).await;
                    self.executors.listed(namespace, executors);
                    self.watch.listed(namespace);
                }
                Seen::Broken { reason } => {
                    tracing::warn!(%reason, "the watch of our pods is interrupted");
                    self.watch.broken(namespace, reason);
                    continue;
                }
            }
            self.watch.works(namespace);
        }
        self.take_in_drivers(drivers).await;
    }

    async fn take_in_drivers(&self, seen: HashMap<SubmissionId, Vec<Observation>>) {
        let each = async |pods: Vec<Observation>| {
            for pod in pods {
                let subject = of_pod(&pod);
                self.until_taken(&subject, || Follow::seen(Box::new(pod.clone()))).await;
            }
        };
        stream::iter(seen.into_values()).for_each_concurrent(AT_ONCE, each).await;
    }

    /// After a full list: live submissions whose pod was not in it.
    async fn compare(&self, namespace: Option<&str>, listed: &HashSet<PodKey>) {
        let live = loop {
            match self.store.live().await {
                Ok(live) => break live,
                Err(error) => tracing::warn!("comparing a list of pods: {}", chain(&error)),
            }
            sleep(PAUSE_MAX).await;
        };
        let missing = live.into_iter().filter(|live| {
            let uid = live.pod_uid.clone().unwrap_or_default();
            let here = namespace.is_none_or(|name| name == live.namespace);
            here && !listed.contains(&(live.id.clone(), live.attempt, uid))
        });
        let each = async |live: Live| {
            let subject = Subject {
                id: &live.id,
                attempt: live.attempt,
                namespace: &live.namespace,
                pod: &live.pod,
                claim: None,
            };
            self.until_taken(&subject, || Follow::missed(row(&live))).await;
        };
        stream::iter(missing).for_each_concurrent(AT_ONCE, each).await;
    }

    /// Runs a machine until it settles for good.
    async fn until_taken(&self, subject: &Subject<'_>, machine: impl Fn() -> Follow) {
        let (mut pause, mut tries) = (PAUSE, 0);
        while let Err(error) = self.follow(subject, machine()).await {
            // In an outage of the whole cluster or of the database nothing else could be done either.
            if matches!(error, Error::Unanswered(_)) && self.gate.pause().is_none() {
                tries += 1;
            }
            if !error.may_pass() || tries >= TRIES {
                tracing::error!(submission = %subject.id, "left to the next list: {}", chain(&error));
                return;
            }
            tracing::warn!(submission = %subject.id, retry_in = ?pause, "{}", chain(&error));
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn follow(&self, subject: &Subject<'_>, machine: impl Machine) -> Result<(), Error> {
        match self.run(subject, machine).await {
            Ok(Settled::TryAgain(why)) => Err(Error::Unanswered(why)),
            Ok(Settled::GivenUp(why)) => {
                tracing::error!(submission = %subject.id, "{why}");
                Ok(())
            }
            Ok(Settled::Done | Settled::LookAgain) | Err(Stopped::ClaimLost) => Ok(()),
            Err(Stopped::Store(error)) => Err(error),
        }
    }
}

fn of_pod(pod: &Observation) -> Subject<'_> {
    Subject { id: &pod.submission, attempt: pod.attempt, namespace: &pod.namespace, pod: &pod.pod, claim: None }
}

fn row(live: &Live) -> Row {
    Row { state: live.state, attempt: live.attempt, pod_uid: live.pod_uid.clone() }
}
