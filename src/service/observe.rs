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
    perform::{Ran, Stopped, Subject},
};
use crate::{
    cluster::{PodKey, Seen},
    store::Live,
    submission::{
        KillCause, Observation, SubmissionId,
        engine::{Effect, Follow, Machine, Row, Settled},
    },
};

/// Submissions whose pods are taken in at once; what is seen of one is taken in in order.
const AT_ONCE: usize = 16;
/// How often a pod's own trouble is tried before it is left to the next list.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The same for what is done to a pod after everything is committed: about ten minutes, until a list shows it again.
const FINISH_TRIES: u32 = 24;
const FINISH_PAUSE: Duration = Duration::from_millis(500);
const FINISH_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a pod goes without the labels that others took from it.
const RESTORE_PAUSE: Duration = Duration::from_secs(1);
/// Pods that this is done to at once.
pub(super) const FINISHING: usize = 32;

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
        // One statement for all: a list shows every pod there is, and most of them have nothing new to tell.
        let ids: Vec<&str> = seen.keys().map(SubmissionId::as_str).collect();
        let mut rows = self.store.rows(&ids).await.unwrap_or_default();
        let seen = seen.into_iter().filter_map(|(id, pods)| {
            let first = pods.first()?;
            let first = Follow::seen(Box::new(first.clone())).knowing(rows.remove(&id));
            let is_news = pods.len() > 1 || *first.effect() != Effect::Settle(Settled::Done);
            is_news.then_some((first, pods))
        });
        let seen: Vec<_> = seen.collect();
        let each = async |(first, pods): (Follow, Vec<Observation>)| {
            let mut first = Some(first);
            for pod in pods {
                // What comes after the first is judged by what became of the row.
                let mut machine = first.take();
                let machine = || machine.take().unwrap_or_else(|| Follow::seen(Box::new(pod.clone())));
                self.until_taken(&of_pod(&pod), machine).await;
            }
        };
        stream::iter(seen).for_each_concurrent(AT_ONCE, each).await;
    }

    /// After a full list: live submissions whose pod was not in it.
    async fn compare(&self, namespace: Option<&str>, listed: &HashSet<PodKey>) {
        let live = loop {
            match self.store.live().await.map_err(Error::from) {
                Ok(live) => break live,
                Err(error) if error.may_pass() => tracing::warn!("comparing a list of pods: {}", chain(&error)),
                Err(error) => return tracing::error!("comparing a list of pods: {}", chain(&error)),
            }
            sleep(PAUSE_MAX).await;
        };
        let missing = live.into_iter().filter(|live| {
            let uid = live.pod_uid.clone().unwrap_or_default();
            let here = namespace.is_none_or(|name| name == live.namespace);
            here && !listed.contains(&(live.id.clone(), live.attempt, uid))
        });
        let missing: Vec<_> = missing.collect();
        // Another cluster has none of them.
        if !missing.is_empty() && !self.is_home_cluster(Duration::ZERO).await {
            return;
        }
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

    /// Runs a machine until what it decides by is read and what it decides is committed. What it then does to the pod
    /// follows in a task of its own: one pod that can't be written to doesn't keep the others waiting.
    async fn until_taken(&self, subject: &Subject<'_>, mut machine: impl FnMut() -> Follow) {
        let (mut pause, mut tries) = (PAUSE, 0);
        loop {
            let error = match self.run_to_write(subject, machine()).await {
                Ok(Ran::Settled(Settled::TryAgain(why))) => Error::Unanswered(why),
                Ok(Ran::Settled(settled)) => return given_up(subject, &settled),
                Ok(Ran::ToWrite(machine)) => return self.finish(subject, machine),
                Err(Stopped::ClaimLost) => return,
                Err(Stopped::Store(error)) => error,
            };
            // Without the database nothing can be done. The cluster may have a trouble with this pod alone.
            if matches!(error, Error::Unanswered(_)) {
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

    /// Lets a pod go whose outcome is committed, or deletes one that no submission stands for.
    fn finish(&self, subject: &Subject<'_>, machine: Follow) {
        let gateway = self.clone();
        let (id, attempt) = (subject.id.clone(), subject.attempt);
        let (namespace, pod) = (subject.namespace.to_owned(), subject.pod.to_owned());
        tokio::spawn(async move {
            let subject = Subject { id: &id, attempt, namespace: &namespace, pod: &pod, claim: None };
            let mut pause = FINISH_PAUSE;
            if matches!(machine.effect(), Effect::RestoreLabels(_)) {
                // What took them may take them again.
                sleep(RESTORE_PAUSE).await;
            }
            for _ in 0..FINISH_TRIES {
                let one = gateway.finishing.acquire().await;
                match gateway.run(&subject, machine.clone()).await {
                    Ok(Settled::TryAgain(why)) => tracing::warn!(submission = %id, retry_in = ?pause, "{why}"),
                    Ok(settled) => return given_up(&subject, &settled),
                    Err(_) => return,
                }
                drop(one);
                sleep(pause).await;
                pause = (pause * 2).min(FINISH_PAUSE_MAX);
            }
            tracing::error!(submission = %id, "the driver pod {namespace}/{pod} is left to the next list");
        });
    }
}

fn given_up(subject: &Subject<'_>, settled: &Settled) {
    if let Settled::GivenUp(why) = settled {
        tracing::error!(submission = %subject.id, "{why}");
    }
}

fn of_pod(pod: &Observation) -> Subject<'_> {
    Subject { id: &pod.submission, attempt: pod.attempt, namespace: &pod.namespace, pod: &pod.pod, claim: None }
}

/// Why it is killed, if it is, is read when that decides.
fn row(live: &Live) -> Row {
    Row { state: live.state, attempt: live.attempt, pod_uid: live.pod_uid.clone(), kill: KillCause::default() }
}
