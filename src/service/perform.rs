//! Carries out the effects that the engine requests, one at a time.

use uuid::Uuid;

use super::{Error, Gateway, circuit_breaker::Failure, error::chain};
use crate::{
    cluster::{self, Manifest},
    submission::{
        SubmissionId,
        engine::{Answer, Effect, Machine, Settled},
    },
};

/// The submission and attempt whose row and objects an effect concerns.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) id: &'a SubmissionId,
    pub(super) attempt: i32,
    pub(super) namespace: &'a str,
    /// The name of the driver pod.
    pub(super) pod: &'a str,
    pub(super) claim: Option<Claim<'a>>,
}

/// The claim under which effects are carried out.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    pub(super) session: Uuid,
    pub(super) epoch: i64,
    pub(super) manifest: &'a Manifest,
    /// Grace period of a deleted pod in seconds; that of its spec if `None`.
    pub(super) grace: Option<i32>,
}

/// How far a machine ran.
pub(super) enum Ran<M> {
    Settled(Settled),
    /// Its next effect is a write to the cluster.
    ToWrite(M),
}

/// Why work ended before the engine settled it.
pub(super) enum Stopped {
    /// The claim is lost: another replica continues.
    ClaimLost,
    Store(Error),
}

impl From<crate::store::Error> for Stopped {
    fn from(error: crate::store::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Gateway {
    /// Runs a machine until it settles.
    pub(super) async fn run(&self, subject: &Subject<'_>, mut machine: impl Machine) -> Result<Settled, Stopped> {
        loop {
            let answer = match (machine.effect(), &subject.claim) {
                (Effect::Settle(settled), _) => return Ok(settled.clone()),
                // The lease is checked right before each write, and as long as the write may still be in flight.
                (effect, Some(claim)) if effect.writes_to_the_cluster() => {
                    if !self.leases.holds(claim.session) {
                        return Err(Stopped::ClaimLost);
                    }
                    tokio::select! {
                        biased;
                        answer = self.perform(subject, effect) => answer?,
                        () = self.leases.lost(claim.session) => return Err(Stopped::ClaimLost),
                    }
                }
                (effect, _) => self.perform(subject, effect).await?,
            };
            machine.answer(answer);
        }
    }

    /// Runs a machine that needs no claim up to its first write to the cluster, or until it settles.
    pub(super) async fn run_to_write<M: Machine>(
        &self,
        subject: &Subject<'_>,
        mut machine: M,
    ) -> Result<Ran<M>, Stopped> {
        loop {
            let effect = machine.effect();
            match effect {
                Effect::Settle(settled) => return Ok(Ran::Settled(settled.clone())),
                effect if effect.writes_to_the_cluster() => return Ok(Ran::ToWrite(machine)),
                effect => {
                    let answer = self.perform(subject, effect).await?;
                    machine.answer(answer);
                }
            }
        }
    }

    async fn perform(&self, subject: &Subject<'_>, effect: &Effect) -> Result<Answer, Stopped> {
        let Subject { id, attempt, namespace, pod, claim } = subject;
        let (cluster, store) = (&self.cluster, &self.store);
        let epoch = claim.as_ref().map(|claim| claim.epoch);
        let called = match (effect, claim) {
            (Effect::Read, _) => return Ok(Answer::Row(store.row(id).await?)),
            (Effect::Advance(progress, placement), _) => {
                let progress = self.with_cause(subject, progress, placement).await;
                let moved = store.advance(id, *attempt, epoch, &progress, placement).await?;
                if moved {
                    self.events.changed();
                    let outcome = progress.outcome();
                    let (exit_code, reason) =
                        (outcome.and_then(|it| it.exit_code), outcome.and_then(|it| it.reason.as_deref()));
                    // Without the message, which may contain output of the driver.
                    tracing::info!(submission = %id, exit_code, reason, state = %progress.state(), "state changed");
                    // A pod without our finalizer may disappear at any time.
                    if let (Some(_), Some(uid), false) = (outcome, &placement.pod_uid, self.outcome_finalizer) {
                        self.keep_what_stays_aside(subject, uid);
                    }
                }
                return Ok(Answer::Moved(moved));
            }
            (Effect::NoteWaiting { reason, message }, _) => {
                store.note_waiting(id, *attempt, reason, message).await?;
                return Ok(Answer::Done);
            }
            (Effect::RecordPod(uid), Some(claim)) => {
                return Ok(Answer::Moved(store.record_pod(id, *attempt, claim.epoch, uid).await?));
            }
            (Effect::LookUp, _) => cluster.find_driver(namespace, pod, id, *attempt).await.map(Answer::Found),
            (Effect::CreatePod, Some(claim)) => {
                cluster.create_pod(namespace, &claim.manifest.pod).await.map(Answer::Created)
            }
            (Effect::CreateBefore(n), Some(Claim { manifest, .. })) => match manifest.before.get(*n) {
                Some(object) => cluster.create_before_pod(namespace, object, id).await.map(|()| Answer::Done),
                None => Ok(Answer::Done),
            },
            (Effect::HandOver(n, uid), Some(Claim { manifest, .. })) => match manifest.before.get(*n) {
                Some(object) => cluster.give_to_pod(namespace, object, pod, uid).await.map(|()| Answer::Done),
                None => Ok(Answer::Done),
            },
            (Effect::DeleteBefore(n), Some(Claim { manifest, .. })) => match manifest.before.get(*n) {
                Some(object) => cluster.delete_before_pod(namespace, object, id).await.map(|()| Answer::Done),
                None => Ok(Answer::Done),
            },
            (Effect::CreateBeside(n, uid), Some(Claim { manifest, .. })) => match manifest.beside.get(*n) {
                Some(object) => cluster.create_owned(namespace, object, pod, uid).await.map(|()| Answer::Done),
                None => Ok(Answer::Done),
            },
            (Effect::Delete(uid), _) => {
                tracing::info!(submission = %id, pod = %format_args!("{namespace}/{pod}"), "deleting the driver pod");
                let grace = claim.as_ref().and_then(|claim| claim.grace);
                cluster.delete_pod(namespace, pod, uid, grace).await.map(|_| Answer::Done)
            }
            (Effect::RestoreLabels(uid), _) => {
                tracing::warn!(submission = %id, pod = %format_args!("{namespace}/{pod}"), "restoring the labels of the driver pod");
                cluster.restore_labels(namespace, pod, uid, id, *attempt).await.map(|()| Answer::Done)
            }
            (Effect::LetGo(uid), _) => {
                self.keep_what_stays(subject, uid).await;
                cluster.let_go(namespace, pod, uid).await.map(|()| Answer::Done)
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
            (Effect::Settle(_), _) => return Ok(Answer::Done),
        };
        self.note_answer(namespace, effect.writes_to_the_cluster(), called.as_ref().err());
        Ok(called.unwrap_or_else(answer))
    }
}

impl Gateway {
    /// Reports the result of a call to the namespace's circuit breaker.
    fn note_answer(&self, namespace: &str, write: bool, error: Option<&cluster::Error>) {
        let failure = error.and_then(|error| match error {
            // An API server that is starting denies every call.
            cluster::Error::Denied { .. } => Some(Failure::Denied),
            error if error.is_outage() && error.is_answer() => Some(Failure::Denied),
            error if error.is_outage() => Some(Failure::Unanswered),
            _ => None,
        });
        if let Some(failure) = failure {
            self.breakers.failed(namespace, write, failure);
        } else if self.breakers.answered(namespace, write) {
            tracing::info!(namespace, "the cluster answers again");
            self.wake.notify_one();
        }
    }
}

/// Classifies a failed call: a `404` on a create means that the namespace doesn't exist.
fn answer(error: cluster::Error) -> Answer {
    let message = chain(&error);
    match error {
        cluster::Error::Unavailable { .. } | cluster::Error::Conflict { .. } => Answer::Unknown(message),
        cluster::Error::AlreadyExists { .. } => Answer::Taken(message),
        cluster::Error::NotFound { .. } => Answer::Refused { reason: "NotFound".to_owned(), message },
        cluster::Error::Denied { .. } => Answer::Denied(message),
        cluster::Error::Refused { reason, .. } => Answer::Refused { reason, message },
    }
}
