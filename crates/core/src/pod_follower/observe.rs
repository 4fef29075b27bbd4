//! Turns observations of the watch into state.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream};
use tokio::time::sleep;

use super::{PodFollower, label, set_aside::Observation};
use crate::effects::{FINISH_PAUSE, FINISH_PAUSE_MAX, FINISH_TRIES, Ran, Stopped, Subject};
use sparkgate_cluster::{PodKey, WatchReport};
use sparkgate_common::{
    error::{Error, error_chain},
    pauses::Pauses,
};
use sparkgate_metrics::metrics;
use sparkgate_store::Live;
use sparkgate_submission::{
    KillCause, Phase, PodObservation, SubmissionId,
    engine::{Effect, Follow, Machine, Row, Settled},
};
use sparkgate_traces::{self, KeyValue, Span, SpanKind, attribute};

/// Submissions that are processed concurrently; the observations of one submission are processed in order.
const AT_ONCE: usize = 16;
/// Attempts at an observation that fails for this pod alone, before it is set aside.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The same for an observation that is set aside, apart from attempts that find the row locked: about ten minutes. Then the
/// observation is left to the next list.
const SET_ASIDE_TRIES: u32 = 60;
const SET_ASIDE_PAUSE_MAX: Duration = Duration::from_secs(10);
/// Pause before labels that another client removed are restored.
const RESTORE_PAUSE: Duration = Duration::from_secs(1);

/// A submission, and what the watch reports about it.
type Observations = (SubmissionId, Vec<Observation>);

impl PodFollower {
    /// Processes observations of the watch of `namespace` (`None`: of all) in order, and retries until they are processed:
    /// while the database or the cluster is unavailable everything waits, because the watch doesn't repeat observations. An
    /// observation that waits for one row alone is set aside. Processing an observation twice is harmless, so this future may
    /// be dropped at any time.
    pub async fn process_reports(
        self: &Arc<Self>,
        namespace: Option<&str>,
        batch: impl IntoIterator<Item = impl Into<Option<WatchReport>>>,
    ) {
        let mut drivers: HashMap<SubmissionId, Vec<PodObservation>> = HashMap::new();
        for observed in batch {
            let observed = observed.into();
            if let Some(report) = &observed {
                self.witness.observe(namespace, report);
                self.note_room(namespace, report);
            }
            match observed {
                Some(WatchReport::Driver(pod)) => {
                    self.ended_drivers.record_observation(namespace, &pod);
                    drivers.entry(pod.submission.clone()).or_default().push(*pod);
                }
                Some(WatchReport::Executor(pod)) => self.executors.record_observation(namespace, &pod),
                Some(WatchReport::Listed { drivers: listed, executors }) => {
                    self.process_drivers(namespace, std::mem::take(&mut drivers)).await;
                    self.compare(namespace, &listed).await;
                    self.executors.listed(namespace, executors);
                    metrics().watch_lists.with([label(namespace)]).inc();
                    self.health.watch.listed(namespace);
                }
                Some(WatchReport::Broken { reason }) => {
                    tracing::warn!(%reason, "pod watch interrupted");
                    metrics().watch_interruptions.with([label(namespace)]).inc();
                    self.health.watch.broken(namespace, reason);
                    continue;
                }
                // The watch advanced without an observation.
                None => {}
            }
            self.health.watch.works(namespace);
        }
        self.process_drivers(namespace, drivers).await;
    }

    /// Lets the next submission of a namespace try whose quota had no room, once a pod there has ended.
    fn note_room(&self, scope: Option<&str>, report: &WatchReport) {
        let freed = match report {
            WatchReport::Driver(pod) if pod.gone || is_over(pod.phase) => {
                self.effects.breakers.freed(Some(&pod.namespace))
            }
            WatchReport::Executor(pod) if pod.gone || is_over(pod.phase) => self.effects.breakers.freed(scope),
            _ => false,
        };
        if freed {
            self.effects.wakeups.work_is_due();
        }
    }

    /// Returns whether all observations of a watch are processed and written.
    pub fn is_caught_up(&self, namespace: Option<&str>) -> bool {
        self.set_aside.is_empty(namespace) && self.executors.is_written(namespace)
    }

    async fn process_drivers(
        self: &Arc<Self>,
        namespace: Option<&str>,
        observed: HashMap<SubmissionId, Vec<PodObservation>>,
    ) {
        // One statement for all submissions: a list contains every pod, and most of them have not changed.
        let ids: Vec<&str> = observed.keys().map(SubmissionId::as_str).collect();
        let mut rows = self.store.rows(&ids).await.unwrap_or_default();
        let observed = observed.into_iter().filter_map(|(id, pods)| {
            self.note_side_cars(pods.last()?);
            let first = pods.first()?;
            let first = Follow::observed(Box::new(first.clone())).knowing(rows.remove(&id));
            let is_news = pods.len() > 1 || *first.effect() != Effect::Settle(Settled::Done);
            is_news.then(|| (Some(first), (id, pods.into_iter().map(|pod| Observation::Pod(Box::new(pod))).collect())))
        });
        self.process_observations(namespace, observed.collect()).await;
    }

    /// Finds, after a full list, the live submissions whose pod was not in it.
    async fn compare(self: &Arc<Self>, namespace: Option<&str>, listed: &HashSet<PodKey>) {
        let live = loop {
            match self.store.live().await.map_err(Error::from) {
                Ok(live) => break live,
                Err(error) if error.may_pass() => {
                    tracing::warn!("comparing a list of pods failed: {}", error_chain(&error))
                }
                Err(error) => return tracing::error!("comparing a list of pods failed: {}", error_chain(&error)),
            }
            sleep(PAUSE_MAX).await;
        };
        let missing = live.into_iter().filter(|live| {
            let uid = live.pod_uid.clone().unwrap_or_default();
            let here = namespace.is_none_or(|name| name == live.namespace);
            here && !listed.contains(&(live.id.clone(), live.attempt, uid))
        });
        let missing = missing.map(|live| (None, (live.id.clone(), vec![Observation::Missed(Box::new(live))])));
        let missing: Vec<_> = missing.collect();
        // Another cluster has none of the pods, so missing pods would prove nothing. Until it is known which cluster this is,
        // everything waits: the next list is minutes away.
        while !missing.is_empty() && !self.health.home.is_here(Duration::ZERO).await {
            if self.health.home.problem().is_some() {
                return;
            }
            sleep(PAUSE).await;
        }
        self.process_observations(namespace, missing).await;
    }

    /// Processes the observations of each submission. A machine for the first observation may already exist.
    async fn process_observations(self: &Arc<Self>, namespace: Option<&str>, all: Vec<(Option<Follow>, Observations)>) {
        let all = all.into_iter().filter_map(|(first, (id, observed))| {
            let observed = self.set_aside.behind(namespace, &id, observed)?;
            Some((first, (id, observed)))
        });
        let mut all: Vec<_> = all.collect();
        if self.set_aside.is_wary() {
            self.set_locked_aside(namespace, &mut all).await;
        }
        let traces = self.traces(all.iter().map(|(_, (id, _))| id)).await;
        let each = async |(mut first, (id, observed)): (Option<Follow>, Observations)| {
            for (place, observation) in observed.iter().enumerate() {
                let span = span_of(observation, traces.get(&id));
                // Later observations are judged by the row as the first one left it.
                let taken = span.enter(self.until_taken(namespace, observation, first.take())).await;
                // What follows in a task of its own is below it, and not a part of it.
                span.end();
                let Err(error) = taken else { continue };
                if self.set_aside(namespace, &id, &observed[place..], &error) {
                    return;
                }
                tracing::error!(submission = %id, "pod observation given up until the next list: {}", error_chain(&error));
            }
        };
        stream::iter(all).for_each_concurrent(AT_ONCE, each).await;
    }

    /// Sets aside the observations of locked rows. After a row was found locked, more may be: one statement that doesn't wait
    /// finds them, before all connections wait for locks.
    async fn set_locked_aside(
        self: &Arc<Self>,
        namespace: Option<&str>,
        all: &mut Vec<(Option<Follow>, Observations)>,
    ) {
        let ids: Vec<_> = all.iter().map(|(_, (id, _))| id).collect();
        let Ok(locked) = self.store.locked(&ids).await else { return };
        let why = Error::Unanswered("its row is locked".to_owned());
        all.retain(|(_, (id, observed))| !(locked.contains(id) && self.set_aside(namespace, id, observed, &why)));
    }

    /// Retries until the observation is evaluated and the result is committed. An error concerns this submission alone: the
    /// observation has to be set aside.
    async fn until_taken(
        &self,
        namespace: Option<&str>,
        observation: &Observation,
        first: Option<Follow>,
    ) -> Result<(), Error> {
        let mut first = first;
        let (mut pauses, mut tries) = (Pauses::new(PAUSE, PAUSE_MAX), 0);
        loop {
            let machine = first.take().unwrap_or_else(|| observation.machine());
            let Err(error) = self.follow(&observation.subject(), machine).await else { return Ok(()) };
            if error.is_contention() {
                self.set_aside.be_wary();
                if self.set_aside.has_room(namespace) {
                    return Err(error);
                }
            }
            // Without the database nothing can be done, so those errors don't count. The cluster may have a problem with this
            // pod alone.
            if matches!(error, Error::Unanswered(_)) {
                tries += 1;
            }
            if !error.may_pass() || tries >= TRIES {
                return Err(error);
            }
            let pause = pauses.next_pause();
            tracing::warn!(submission = %observation.subject().id, retry_in = ?pause, "storing a pod observation failed: {}", error_chain(&error));
            sleep(pause).await;
        }
    }

    /// Sets aside the observations of a submission, in order, and starts a task that retries them. Returns `false` if too many
    /// are set aside already, or if no watch of this scope runs.
    fn set_aside(
        self: &Arc<Self>,
        namespace: Option<&str>,
        id: &SubmissionId,
        observed: &[Observation],
        why: &Error,
    ) -> bool {
        let (follower, scope, submission) = (self.clone(), namespace.map(str::to_owned), id.clone());
        let retry = async move { follower.take_what_is_set_aside(scope.as_deref(), &submission).await };
        self.set_aside.add(namespace, id, observed, why, retry)
    }

    async fn take_what_is_set_aside(&self, namespace: Option<&str>, id: &SubmissionId) {
        while let Some(observation) = self.set_aside.first(namespace, id) {
            let span = span_of(&observation, self.traces([id]).await.get(id));
            span.enter(self.until_taken_at_last(id, &observation)).await;
            span.end();
            self.set_aside.taken(namespace, id);
        }
        tracing::info!(submission = %id, "all pod observations that were set aside are stored or given up");
    }

    /// Returns the traces of submissions, if traces are on. Without the database, observations are processed later, or not traced.
    async fn traces<'a>(&self, ids: impl IntoIterator<Item = &'a SubmissionId>) -> HashMap<SubmissionId, String> {
        if !sparkgate_traces::are_on() {
            return HashMap::new();
        }
        let ids: Vec<_> = ids.into_iter().collect();
        if ids.is_empty() { HashMap::new() } else { self.store.traces(&ids).await.unwrap_or_default() }
    }

    async fn until_taken_at_last(&self, id: &SubmissionId, observation: &Observation) {
        let mut pauses = Pauses::new(PAUSE, SET_ASIDE_PAUSE_MAX);
        let (mut pause, mut tries) = (pauses.next_pause(), 0);
        loop {
            sleep(pause).await;
            pause = pauses.next_pause();
            // Waiting for the row lock would occupy one of few connections.
            if self.store.locked(&[id]).await.is_ok_and(|locked| !locked.is_empty()) {
                continue;
            }
            let Err(error) = self.take(observation).await else { return };
            if !error.is_contention() {
                tries += 1;
            }
            if tries >= SET_ASIDE_TRIES {
                return tracing::error!(submission = %id, "pod observation given up until the next list: {}", error_chain(&error));
            }
            tracing::debug!(submission = %id, retry_in = ?pause, "{}", error_chain(&error));
        }
    }

    /// Processes one observation, without a retry.
    async fn take(&self, observation: &Observation) -> Result<(), Error> {
        self.follow(&observation.subject(), observation.machine()).await
    }

    /// Runs a machine until its decision is committed. Its writes to the pod follow in a task of their own, so that a pod that
    /// can't be written to doesn't delay others.
    async fn follow(&self, subject: &Subject<'_>, machine: Follow) -> Result<(), Error> {
        match self.effects.run_to_write(subject, machine).await {
            Ok(Ran::Settled(Settled::TryAgain(why))) => return Err(Error::Unanswered(why)),
            Ok(Ran::Settled(settled)) => given_up(subject, &settled),
            Ok(Ran::ToWrite(machine)) => self.finish(subject, machine),
            // Only a launch waits.
            Err(Stopped::ClaimLost | Stopped::Waits(_) | Stopped::Held(_)) => {}
            Err(Stopped::Store(error)) => return Err(error),
        }
        Ok(())
    }

    /// Removes the finalizer of a pod whose outcome is committed, restores its labels, or deletes a pod without a submission.
    fn finish(&self, subject: &Subject<'_>, machine: Follow) {
        let effects = self.effects.clone();
        let (id, attempt) = (subject.id.clone(), subject.attempt);
        let (namespace, pod) = (subject.namespace.to_owned(), subject.pod.to_owned());
        let finish = async move {
            let subject = Subject { id: &id, attempt, namespace: &namespace, pod: &pod, held: true, claim: None };
            let mut pauses = Pauses::new(FINISH_PAUSE, FINISH_PAUSE_MAX);
            if matches!(machine.effect(), Effect::RestoreLabels(_)) {
                // The client that removed them may remove them again.
                sleep(RESTORE_PAUSE).await;
            }
            for _ in 0..FINISH_TRIES {
                let pause = pauses.next_pause();
                let one = effects.permit_to_finish(&namespace).await;
                match effects.run(&subject, machine.clone()).await {
                    Ok(Settled::TryAgain(why)) => {
                        tracing::warn!(submission = %id, retry_in = ?pause, "writing to the driver pod failed: {why}")
                    }
                    Ok(settled) => return given_up(&subject, &settled),
                    Err(_) => return,
                }
                drop(one);
                sleep(pause).await;
            }
            tracing::error!(submission = %id, "writes to the driver pod {namespace}/{pod} given up until the next list");
        };
        tokio::spawn(Span::current().enter(finish));
    }
}

/// Returns whether a pod in this phase counts against no quota any more.
fn is_over(phase: Phase) -> bool {
    matches!(phase, Phase::Succeeded | Phase::Failed)
}

/// Returns the span of an observation, in the trace that its submission belongs to.
fn span_of(observation: &Observation, trace: Option<&String>) -> Span {
    Span::for_submission("follow", SpanKind::Consumer, trace.map(String::as_str), || {
        let Subject { id, attempt, namespace, pod, .. } = observation.subject();
        [
            KeyValue::new(attribute::SUBMISSION_ID, id.to_string()),
            KeyValue::new(attribute::ATTEMPT, i64::from(attempt)),
            KeyValue::new(attribute::K8S_NAMESPACE_NAME, namespace.to_owned()),
            KeyValue::new(attribute::K8S_POD_NAME, pod.to_owned()),
        ]
    })
}

fn given_up(subject: &Subject<'_>, settled: &Settled) {
    if let Settled::GivenUp(why) = settled {
        tracing::error!(submission = %subject.id, "the API server refuses a write to the driver pod: {why}");
    }
}

impl Observation {
    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Pod(observed) => {
                let PodObservation { submission, attempt, namespace, pod, .. } = &**observed;
                Subject {
                    id: submission,
                    attempt: *attempt,
                    namespace,
                    pod,
                    held: observed.holds_finalizer,
                    claim: None,
                }
            }
            Self::Missed(live) => {
                let Live { id, attempt, namespace, pod, .. } = &**live;
                Subject { id, attempt: *attempt, namespace, pod, held: true, claim: None }
            }
        }
    }

    fn machine(&self) -> Follow {
        match self {
            Self::Pod(observed) => Follow::observed(observed.clone()),
            // The cause of a kill, if there is one, is read when it matters.
            Self::Missed(live) => Follow::missed(Row {
                state: live.state,
                attempt: live.attempt,
                namespace: live.namespace.clone(),
                pod: (!live.pod.is_empty()).then(|| live.pod.clone()),
                pod_uid: live.pod_uid.clone(),
                kill: KillCause::default(),
            }),
        }
    }
}
