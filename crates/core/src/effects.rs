//! Carries out the effects that the engine requests, one at a time.

pub mod circuit_breaker;

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use self::circuit_breaker::{CircuitBreakers, Failure};
use crate::{leadership::leases::Leases, ports::Wait, redaction, wakeups::Wakeups, witness::Witness};
use sparkgate_cluster::{self, Cluster, LogOf, Manifest};
use sparkgate_common::{
    error::{Error, error_chain},
    pauses::Pauses,
    shares::{Place, Shares},
};
use sparkgate_store::{self, Store};
use sparkgate_submission::{
    FailureCode, Outcome, Placement, State, StateChange, SubmissionId,
    engine::{Effect, EffectResult, Machine, Obstacle, Settled},
};
use sparkgate_tenancy::access_file::AccessFile;
use sparkgate_traces::{Span, attribute};

/// Maximum number of pods of one namespace that are written to concurrently after their outcome is committed; of all, twice as many.
const FINISHING: usize = 32;
/// Tries of a write to a pod after its outcome is committed: about ten minutes.
pub const FINISH_TRIES: u32 = 24;
/// Tries of a submission whose namespace doesn't exist, if others were refused before: about five minutes.
const MISSING_TRIES: i32 = 14;
/// How long the state of a row that a launch has recorded its pod in is as good as a new one: the time of a few calls to an idle API
/// server.
const MOMENT: Duration = Duration::from_millis(250);
/// Pause after the first try. It doubles each time.
pub const FINISH_PAUSE: Duration = Duration::from_millis(500);
pub const FINISH_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Runs the engine's machines: launches and kills under a claim, and what follows from observations.
pub struct Effects {
    store: Store,
    cluster: Cluster,
    pub leases: Arc<Leases>,
    pub wakeups: Arc<Wakeups>,
    witness: Arc<dyn Witness>,
    /// Whether a finalizer keeps driver pods until their outcome is recorded.
    outcome_finalizer: bool,
    pub breakers: CircuitBreakers,
    /// Limits concurrent writes to pods after their outcome is committed.
    finishing: Shares,
    access: Arc<AccessFile>,
}

/// The submission and attempt whose row and objects an effect concerns.
#[derive(Debug)]
pub struct Subject<'a> {
    pub id: &'a SubmissionId,
    pub attempt: i32,
    pub namespace: &'a str,
    /// The name of the driver pod.
    pub pod: &'a str,
    /// Whether the pod has the finalizer, if it is one of this gateway at all.
    pub held: bool,
    pub claim: Option<Claim<'a>>,
}

/// The claim under which effects are carried out.
#[derive(Debug)]
pub struct Claim<'a> {
    pub session: Uuid,
    pub epoch: i64,
    pub manifest: &'a Manifest,
    /// Consecutive failed tries before this one.
    pub failed_tries: i32,
    /// Grace period of a deleted pod in seconds; that of its spec if `None`.
    pub grace: Option<i32>,
}

/// How far a machine ran.
pub enum Ran<M> {
    Settled(Settled),
    /// Its next effect is a write to the cluster.
    ToWrite(M),
}

/// Why work ended before the engine settled it.
pub enum Stopped {
    /// The claim is lost: another replica continues.
    ClaimLost,
    Store(Error),
    /// The launch waits for something that may pass.
    Waits(Wait),
    /// A queue holds the launch back.
    Held(Wait),
}

impl From<sparkgate_store::Error> for Stopped {
    fn from(error: sparkgate_store::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Effects {
    pub fn new(
        store: Store,
        cluster: Cluster,
        leases: Arc<Leases>,
        wakeups: Arc<Wakeups>,
        witness: Arc<dyn Witness>,
        outcome_finalizer: bool,
        access: Arc<AccessFile>,
    ) -> Self {
        let (breakers, finishing) = (CircuitBreakers::default(), Shares::new(FINISHING));
        Self { store, cluster, leases, wakeups, witness, outcome_finalizer, breakers, finishing, access }
    }

    /// Waits for a place to write to a pod whose outcome is committed.
    pub async fn permit_to_finish(&self, namespace: &str) -> Place {
        self.finishing.acquire(&self.access.tenant_of(namespace), namespace).await
    }

    /// Runs a machine until it settles.
    pub async fn run(&self, subject: &Subject<'_>, mut machine: impl Machine) -> Result<Settled, Stopped> {
        let mut recorded: Option<(Instant, State)> = None;
        loop {
            let result = match (machine.effect(), &subject.claim) {
                (Effect::Settle(settled), _) => return Ok(settled.clone()),
                // A kill that was accepted since would be noticed as late as one that is accepted right now.
                (Effect::Read, Some(_)) if recorded.is_some_and(|(at, _)| at.elapsed() < MOMENT) => {
                    EffectResult::Recorded(recorded.take().map(|(_, state)| state))
                }
                // The lease is checked right before each write, and as long as the write may still be in flight.
                (effect, Some(claim)) if effect.writes_to_the_cluster() => {
                    if !self.leases.holds(claim.session) {
                        return Err(Stopped::ClaimLost);
                    }
                    tokio::select! {
                        biased;
                        result = self.carry_out(subject, effect) => result?,
                        () = self.leases.lost(claim.session) => return Err(Stopped::ClaimLost),
                    }
                }
                (effect, _) => self.carry_out(subject, effect).await?,
            };
            if let (Effect::RecordPod(_), EffectResult::Recorded(Some(state))) = (machine.effect(), &result) {
                recorded = Some((Instant::now(), *state));
            }
            machine.take_result(result);
        }
    }

    /// Runs a machine that needs no claim up to its first write to the cluster, or until it settles.
    pub async fn run_to_write<M: Machine>(&self, subject: &Subject<'_>, mut machine: M) -> Result<Ran<M>, Stopped> {
        loop {
            let effect = machine.effect();
            match effect {
                Effect::Settle(settled) => return Ok(Ran::Settled(settled.clone())),
                effect if effect.writes_to_the_cluster() => return Ok(Ran::ToWrite(machine)),
                effect => {
                    let result = self.carry_out(subject, effect).await?;
                    machine.take_result(result);
                }
            }
        }
    }

    async fn carry_out(&self, subject: &Subject<'_>, effect: &Effect) -> Result<EffectResult, Stopped> {
        let Subject { id, attempt, namespace, pod, claim, .. } = subject;
        let (cluster, store) = (&self.cluster, &self.store);
        let called = match (effect, claim) {
            (Effect::Read, _) => return Ok(EffectResult::Row(store.row(id).await?)),
            (Effect::Advance(change, placement), _) => {
                return Ok(EffectResult::Moved(self.advance(subject, change, placement).await?));
            }
            (Effect::NoteWaiting { reason, message }, _) => {
                store.note_waiting(id, *attempt, reason, message).await?;
                return Ok(EffectResult::Done);
            }
            (Effect::RecordPod(uid), Some(claim)) => {
                return Ok(EffectResult::Recorded(store.record_pod(id, *attempt, claim.epoch, uid).await?));
            }
            (Effect::LookUp, _) => cluster.find_driver(namespace, pod, id, *attempt).await.map(EffectResult::Found),
            (Effect::CreatePod, Some(claim)) => {
                let created = cluster.create_pod(namespace, &claim.manifest.pod, (id, *attempt)).await;
                created.map(|seen| EffectResult::Created(Box::new(seen)))
            }
            (Effect::CreateBefore(n), Some(Claim { manifest, .. })) => match manifest.before.get(*n) {
                Some(object) => cluster.create_before_pod(namespace, object, id).await.map(|()| EffectResult::Done),
                None => Ok(EffectResult::Done),
            },
            (Effect::HandOver(n, uid), Some(Claim { manifest, .. })) => match manifest.before.get(*n) {
                Some(object) => cluster.give_to_pod(namespace, object, pod, uid).await.map(|()| EffectResult::Done),
                None => Ok(EffectResult::Done),
            },
            (Effect::DeleteBefore(n), Some(Claim { manifest, .. })) => match manifest.before.get(*n) {
                Some(object) => cluster.delete_before_pod(namespace, object, id).await.map(|()| EffectResult::Done),
                None => Ok(EffectResult::Done),
            },
            (Effect::CreateBeside(n, driver), Some(Claim { manifest, .. })) => match manifest.beside.get(*n) {
                Some(object) => {
                    let created = cluster.create_owned(namespace, object, (pod, &driver.uid), driver.is_older).await;
                    created.map(|()| EffectResult::Done)
                }
                None => Ok(EffectResult::Done),
            },
            (Effect::Delete(uid), _) => {
                tracing::info!(submission = %id, pod = %format_args!("{namespace}/{pod}"), "deleting the driver pod");
                let grace = claim.as_ref().and_then(|claim| claim.grace);
                cluster.delete_pod(namespace, pod, uid, grace).await.map(|_| EffectResult::Done)
            }
            (Effect::RestoreLabels(uid), _) => {
                tracing::warn!(submission = %id, pod = %format_args!("{namespace}/{pod}"), "restoring the labels of the driver pod");
                let manifest = claim.as_ref().map(|claim| claim.manifest);
                let restored = cluster.restore_labels(namespace, pod, uid, (id, *attempt), manifest).await;
                restored.map(|()| EffectResult::Done)
            }
            (Effect::RemoveFinalizer(uid), _) => {
                self.witness.archive(id, *attempt, &LogOf { namespace, pod, uid }).await;
                let removed = cluster.remove_finalizer(namespace, pod, uid).await;
                if claim.is_some() && removed.is_err() {
                    self.remove_finalizer_in_background(subject, uid);
                }
                removed.map(|()| EffectResult::Done)
            }
            // Only work under a claim creates objects.
            (
                Effect::RecordPod(_)
                | Effect::CreateBefore(_)
                | Effect::CreatePod
                | Effect::HandOver(..)
                | Effect::CreateBeside(..)
                | Effect::DeleteBefore(_),
                None,
            ) => return Err(Stopped::ClaimLost),
            (Effect::Settle(_), _) => return Ok(EffectResult::Done),
        };
        let is_followed = self.breakers.is_refused(namespace);
        self.note_answer(namespace, effect, called.as_ref().err());
        Ok(called.unwrap_or_else(|error| failed(subject, effect, error, is_followed)))
    }

    /// Writes a state change of the attempt, and archives what would go with a pod that has ended. Returns whether the row moved.
    async fn advance(
        &self,
        subject: &Subject<'_>,
        change: &StateChange,
        placement: &Placement,
    ) -> Result<bool, Stopped> {
        let Subject { id, attempt, namespace, pod, held, claim } = subject;
        let explained = match (change, &placement.pod_uid) {
            (StateChange::Ended(outcome), Some(uid)) => {
                let cause = self.witness.cause(outcome, id, *attempt, &LogOf { namespace, pod, uid }).await;
                cause.map(|cause| StateChange::Ended(outcome.clone().because_of(&cause)))
            }
            _ => None,
        };
        let change = explained.as_ref().unwrap_or(change);
        let epoch = claim.as_ref().map(|claim| claim.epoch);
        let moved = self.store.advance(id, *attempt, epoch, change, placement).await?;
        if moved {
            self.wakeups.state_changed();
            mark(change);
            // A pod without our finalizer may disappear at any time.
            if let (Some(_), Some(uid), false) = (change.outcome(), &placement.pod_uid, self.outcome_finalizer && *held)
            {
                self.archive_in_background(subject, uid);
            }
        }
        Ok(moved)
    }

    /// Archives the log and the events in the background, for a pod without our finalizer.
    fn archive_in_background(&self, subject: &Subject<'_>, uid: &str) {
        let (finishing, witness) = (self.finishing.clone(), self.witness.clone());
        let tenant = self.access.tenant_of(subject.namespace);
        let (id, attempt, uid) = (subject.id.clone(), subject.attempt, uid.to_owned());
        let (namespace, pod) = (subject.namespace.to_owned(), subject.pod.to_owned());
        tokio::spawn(async move {
            let _one = finishing.acquire(&tenant, &namespace).await;
            witness.archive(&id, attempt, &LogOf { namespace: &namespace, pod: &pod, uid: &uid }).await;
        });
    }

    /// Removes the finalizer later. No claim is given for a submission that has ended, and the watch doesn't see a pod that lost its
    /// labels.
    fn remove_finalizer_in_background(&self, subject: &Subject<'_>, uid: &str) {
        let (finishing, cluster) = (self.finishing.clone(), self.cluster.clone());
        let tenant = self.access.tenant_of(subject.namespace);
        let (id, uid) = (subject.id.clone(), uid.to_owned());
        let (namespace, pod) = (subject.namespace.to_owned(), subject.pod.to_owned());
        tokio::spawn(async move {
            let mut pauses = Pauses::new(FINISH_PAUSE, FINISH_PAUSE_MAX);
            let mut pause = pauses.next_pause();
            for _ in 0..FINISH_TRIES {
                sleep(pause).await;
                pause = pauses.next_pause();
                let _one = finishing.acquire(&tenant, &namespace).await;
                let Err(error) = cluster.remove_finalizer(&namespace, &pod, &uid).await else { return };
                tracing::warn!(submission = %id, retry_in = ?pause, "removing the finalizer failed: {}", error_chain(&error));
            }
        });
    }

    /// Reports the result of a call to the namespace's circuit breaker.
    fn note_answer(&self, namespace: &str, effect: &Effect, error: Option<&sparkgate_cluster::Error>) {
        let write = effect.writes_to_the_cluster();
        let failure = error.and_then(|error| match error {
            // An API server that is starting denies every call.
            sparkgate_cluster::Error::Denied { .. } | sparkgate_cluster::Error::NotNow { .. } => Some(Failure::Denied),
            sparkgate_cluster::Error::QuotaExceeded { .. } => Some(Failure::Full),
            error if is_missing(namespace, effect, error) || error.is_beyond_quota() => Some(Failure::Refused),
            error if error.is_outage() && error.is_answer() => Some(Failure::Denied),
            error if error.is_outage() => Some(Failure::Unanswered),
            _ => None,
        });
        if let Some(failure) = failure {
            self.breakers.failed(namespace, write, failure, error.and_then(sparkgate_cluster::Error::retry_after));
        } else if self.breakers.answered(namespace, write, error.is_none() && *effect == Effect::CreatePod) {
            tracing::info!(namespace, "the cluster answers again");
            self.wakeups.work_is_due();
        }
    }
}

/// Adds the state that a submission changed to, and why it failed, to the current span.
fn mark(change: &StateChange) {
    let span = Span::current();
    if !span.is_recorded() {
        return;
    }
    span.set(attribute::STATE, change.state().as_str());
    if let Some(Outcome { state, exit_code, reason, message }) = change.outcome()
        && let Some(code) = FailureCode::for_end(*state, *exit_code, reason.as_deref(), Some(message))
    {
        span.set(attribute::FAILURE_CODE, code.as_str());
    }
}

/// Returns whether an object can't be created because its namespace doesn't exist.
fn is_missing(namespace: &str, effect: &Effect, error: &sparkgate_cluster::Error) -> bool {
    let creates = matches!(effect, Effect::CreateBefore(_) | Effect::CreatePod | Effect::CreateBeside(..));
    creates && matches!(error, sparkgate_cluster::Error::NotFound { name, .. } if name == namespace)
}

/// Classifies a failed call of an effect. `is_followed` says that calls in the namespace were refused before this one.
fn failed(subject: &Subject<'_>, effect: &Effect, error: sparkgate_cluster::Error, is_followed: bool) -> EffectResult {
    let Subject { namespace, claim, .. } = subject;
    // The namespace may be created again: its first submission says so by its end, and those behind it wait for a while.
    let waits = is_followed && claim.as_ref().is_some_and(|claim| claim.failed_tries < MISSING_TRIES);
    let is_missing = is_missing(namespace, effect, &error);
    match result_of(error, claim.as_ref().map(|claim| claim.manifest)) {
        EffectResult::Refused { message, .. } if waits && is_missing => {
            EffectResult::Postponed(Obstacle::Namespace, message)
        }
        result => result,
    }
}

/// Classifies a failed call: a `404` on a create means that the namespace doesn't exist. The message has no secrets of the objects.
fn result_of(error: sparkgate_cluster::Error, manifest: Option<&Manifest>) -> EffectResult {
    let message = error_chain(&error);
    let message = match manifest {
        Some(manifest) => redaction::message_about(manifest, message),
        None => message,
    };
    match error {
        sparkgate_cluster::Error::Unavailable { .. } | sparkgate_cluster::Error::Conflict { .. } => {
            EffectResult::Unknown(message)
        }
        sparkgate_cluster::Error::AlreadyExists { .. } => EffectResult::Taken(message),
        sparkgate_cluster::Error::NotFound { .. } => EffectResult::Refused { reason: "NotFound".to_owned(), message },
        sparkgate_cluster::Error::Denied { .. } => EffectResult::Denied(message),
        sparkgate_cluster::Error::QuotaExceeded { .. } => EffectResult::Postponed(Obstacle::Quota, message),
        sparkgate_cluster::Error::NotNow { .. } => EffectResult::Postponed(Obstacle::Webhook, message),
        sparkgate_cluster::Error::Refused { reason, .. } => EffectResult::Refused { reason, message },
    }
}
