//! What really happened to each pod and submission, and whether what the gateway recorded is true.

use sparkgate::submission::{KillCause, Outcome, RetryKind, State};

use crate::{
    cluster::{Cluster, Local, Pod, uid_number},
    names::{name_of, submission_of},
    store::{Limits, Next, Past, Row, Store, Time, ran_out_of_memory},
};

/// The life of one driver pod.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PodTruth {
    /// The attempt whose name it has.
    pub(crate) name: Option<usize>,
    /// Created by a writer whose claim was lost.
    pub(crate) stray: bool,
    pub(crate) started: bool,
    /// The driver's exit code, once its node has reported it to the API server.
    pub(crate) exit: Option<i32>,
    /// The API server has a report that the pod failed, without an exit code.
    pub(crate) failed: bool,
    /// When the API server received either report.
    pub(crate) ended_at: Option<Time>,
    pub(crate) deleted_outside: bool,
    /// It was being deleted without grace before its end was reported.
    pub(crate) forced_first: bool,
    pub(crate) stripped: bool,
    /// Others removed its labels, or its identity (`unsigned`).
    pub(crate) unlabelled: bool,
    pub(crate) unsigned: bool,
    /// Created by others, as a copy of a pod that they deleted.
    pub(crate) copied: bool,
    pub(crate) recorded: bool,
}

/// The pod that owns the `ConfigMap` with which a driver starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigMapOf {
    Itself,
    /// A pod that was deleted a moment ago, and whose objects haven't been garbage-collected yet.
    Gone,
    /// The same, and the `ConfigMap` was created by a writer whose claim was lost or whose submission had ended.
    GoneByALateWriter,
}

/// The life of one submission.
#[derive(Debug, Clone, Default)]
pub(crate) struct Submission {
    /// The first cause for which it is killed.
    pub(crate) kill: Option<KillCause>,
    /// It is killed because it didn't start in time, and only its attempt ends, unless a caller kills it, too.
    is_of_attempt: bool,
    /// A caller killed it after that.
    is_killed_twice: bool,
    /// The cluster or the gateway refused an object of it.
    pub(crate) refused: bool,
    limits: Limits,
    /// When a client last used it, by the database's clock, if it is a session.
    pub(crate) used_at: Option<Time>,
    /// The numbers of events, and of attempts followed by another one, that were checked.
    events: usize,
    past: usize,
    pub(crate) retired: bool,
    pub(crate) tenant: usize,
    /// A caller of its tenant has cleared it.
    pub(crate) cleared: bool,
}

/// The life of one attempt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempt {
    pub(crate) creates: u32,
    pub(crate) starts: u32,
    /// The recorded pod.
    pod: Option<u64>,
    /// A webhook let its kubelet start the driver again.
    pub(crate) changed: bool,
    /// A foreign pod had the name.
    pub(crate) foreign: bool,
    /// An object that was created before the pod may be left: a late writer created it, or others ended the pod before
    /// the pod became the object's owner. It starts nothing; clean-up deletes it with the row's pod.
    pub(crate) may_leave_an_object: bool,
    pub(crate) outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Truths {
    pub(crate) submissions: Vec<Submission>,
    /// By name.
    pub(crate) attempts: Vec<Attempt>,
    /// By uid.
    pub(crate) pods: Vec<PodTruth>,
}

impl Submission {
    pub(crate) fn new(refused: bool, limits: Limits, tenant: usize) -> Self {
        Self { refused, limits, tenant, ..Self::default() }
    }

    /// Records a requested kill: the first cause stays.
    pub(crate) fn is_killed(&mut self, cause: KillCause) {
        self.is_killed_twice |= std::mem::take(&mut self.is_of_attempt);
        self.kill.get_or_insert(cause);
    }

    /// Records a passed time limit.
    pub(crate) fn is_overdue(&mut self, cause: KillCause, is_of_attempt: bool) {
        self.is_of_attempt = is_of_attempt;
        self.kill.get_or_insert(cause);
    }
}

impl Truths {
    pub(crate) fn pod(&mut self, uid: u64) -> &mut PodTruth {
        let at = uid as usize;
        if self.pods.len() <= at {
            self.pods.resize(at + 1, PodTruth::default());
        }
        &mut self.pods[at]
    }

    /// Checks a row after a write: no state goes backwards, the end of an attempt is the only one and a true one, and
    /// what follows it is allowed to follow. Returns the states of new ends.
    pub(crate) fn check(
        &mut self,
        store: &Store,
        cluster: &Cluster,
        finalizer: bool,
        submission: usize,
    ) -> Result<Vec<State>, String> {
        let Some(row) = store.row(submission) else {
            let truth = &self.submissions[submission];
            return if truth.retired { Ok(Vec::new()) } else { Err(format!("the accepted row {submission} is gone")) };
        };
        self.check_events(submission, row)?;
        if row.cleared != self.submissions[submission].cleared {
            return Err(format!("row {submission} is cleared: {}, and no caller of its tenant did that", row.cleared));
        }
        let mut ends = Vec::new();
        for place in self.submissions[submission].past..row.past.len() {
            let (attempt, past) = (place as i32 + 1, &row.past[place]);
            let name = name_of(submission, attempt);
            ends.extend(self.check_attempt(cluster, finalizer, name, past.pod_uid.as_deref(), Some(&past.outcome))?);
            self.check_retry(cluster, row, name, past)?;
            let truth = &mut self.submissions[submission];
            if std::mem::take(&mut truth.is_of_attempt) {
                truth.kill = None;
            }
        }
        self.submissions[submission].past = row.past.len();
        if row.attempt as usize != row.past.len() + 1 {
            return Err(format!("row {submission} is in attempt {} after {}", row.attempt, row.past.len()));
        }
        if row.state.is_terminal() != row.outcome.is_some() {
            return Err(format!("row {submission} is {}, with the outcome {:?}", row.state, row.outcome));
        }
        let name = name_of(submission, row.attempt);
        ends.extend(self.check_attempt(cluster, finalizer, name, row.pod_uid.as_deref(), row.outcome.as_ref())?);
        Ok(ends)
    }

    fn check_events(&mut self, submission: usize, row: &Row) -> Result<(), String> {
        let truth = &mut self.submissions[submission];
        let known = truth.events;
        truth.events = row.events.len();
        for pair in row.events[known.saturating_sub(1)..].windows(2) {
            let [(before, from), (attempt, to)] = [pair[0], pair[1]];
            let forwards = before == attempt && from.may_become(to);
            let anew = before + 1 == attempt && from.is_terminal() && to == State::Queued;
            let held_or_released = before == attempt && from == State::Queued && to == State::Queued;
            // A client kills what was about to wait for room in another attempt.
            let killed_for_good = before == attempt && from == State::Killing && to == State::Killing;
            if !forwards && !anew && !held_or_released && !killed_for_good {
                return Err(format!(
                    "row {submission} moved from {from}, attempt {before}, to {to}, attempt {attempt}"
                ));
            }
        }
        if row.events.last() != Some(&(row.attempt, row.state)) {
            return Err(format!("row {submission} is {}, and its events end with {:?}", row.state, row.events.last()));
        }
        Ok(())
    }

    /// Checks what is stored of an attempt. Returns the state of a new end.
    fn check_attempt(
        &mut self,
        cluster: &Cluster,
        finalizer: bool,
        name: usize,
        pod_uid: Option<&str>,
        outcome: Option<&Outcome>,
    ) -> Result<Option<State>, String> {
        let recorded = pod_uid.map(uid_number);
        if let Some(uid) = recorded {
            self.pod(uid).recorded = true;
            if self.pod(uid).name != Some(name) {
                return Err(format!("attempt {name} has the pod {uid}, which is of {:?}", self.pod(uid).name));
            }
        }
        let truth = &mut self.attempts[name];
        if truth.pod.is_some() && truth.pod != recorded {
            return Err(format!("attempt {name} had the pod {:?}, and has {recorded:?} now", truth.pod));
        }
        truth.pod = recorded;
        match (&truth.outcome, outcome) {
            (Some(before), now) if now != Some(before) => {
                Err(format!("attempt {name} ended with {before:?}, and now says {now:?}"))
            }
            (None, Some(outcome)) => {
                truth.outcome = Some(outcome.clone());
                match self.lie(cluster, finalizer, name, outcome, recorded) {
                    Some(lie) => Err(format!("attempt {name} ended with {outcome:?} (pod {recorded:?}): {lie}")),
                    None => Ok(Some(outcome.state)),
                }
            }
            _ => Ok(None),
        }
    }

    /// Checks whether another attempt may follow the one with these names.
    fn check_retry(&self, cluster: &Cluster, row: &Row, name: usize, past: &Past) -> Result<(), String> {
        let truth = &self.submissions[submission_of(name)];
        let (outcome, limits) = (&past.outcome, truth.limits);
        let no_room = truth.is_of_attempt && outcome.state == State::Killed;
        let allowed = match past.next {
            Next::Budget(kind @ (RetryKind::Capacity | RetryKind::Quota)) => {
                no_room || outcome.retry_kind() == Some(kind)
            }
            Next::Budget(kind) => outcome.retry_kind() == Some(kind),
            Next::Memory => ran_out_of_memory(outcome) && limits.memory.is_some(),
            Next::Restart => limits.restart.follows(outcome.state),
        };
        let counted = row.retried.iter().sum::<u32>() + row.retried_memory;
        let budgets = row.past.iter().filter(|past| past.next != Next::Restart).count();
        let wrong = if truth.kill.is_some() && !no_room {
            "its end was asked for"
        } else if !allowed {
            "such an end is never tried again"
        } else if row.retried.iter().zip(limits.budgets()).any(|(retried, most)| *retried > most)
            || row.retried_memory > limits.memory.unwrap_or_default()
        {
            "more than were asked for"
        } else if counted as usize != budgets {
            "not all are counted"
        } else if cluster.names[name].pod.is_some_and(|pod| self.still_runs(&pod)) {
            "its driver still runs"
        } else {
            return Ok(());
        };
        Err(format!("attempt {name} ended with {outcome:?} and was followed by another: {wrong}"))
    }

    /// Returns whether its driver runs, and the pod was not deleted by force, which tells the API server otherwise. A
    /// copy that others made of a pod which they deleted is their driver.
    fn still_runs(&self, pod: &Pod) -> bool {
        let truth = self.pods.get(pod.uid as usize).copied().unwrap_or_default();
        pod.local == Local::Running && !truth.forced_first && !truth.copied
    }

    /// Returns what is wrong about an outcome.
    fn lie(
        &self,
        cluster: &Cluster,
        finalizer: bool,
        name: usize,
        outcome: &Outcome,
        recorded: Option<u64>,
    ) -> Option<&'static str> {
        let (submission, attempt) = (&self.submissions[submission_of(name)], &self.attempts[name]);
        let pod = recorded.map(|uid| self.pods[uid as usize]).unwrap_or_default();
        let deleted_outside = self.pods.iter().any(|pod| pod.name == Some(name) && pod.deleted_outside);
        let unsigned = self.pods.iter().any(|pod| pod.name == Some(name) && pod.unsigned);
        let is_there = recorded.is_some_and(|uid| cluster.pod(uid).is_some());
        let by_us = submission.kill.as_ref().is_some_and(|cause| outcome.reason.as_deref() == Some(cause.reason()))
            || submission.is_killed_twice && outcome.reason.as_deref() == Some(KillCause::REQUEST);
        if outcome.exit_code.is_some() && outcome.exit_code != pod.exit {
            return Some("no driver exited with this code");
        }
        match outcome.state {
            State::Finished if pod.exit != Some(0) => Some("it didn't exit with code 0"),
            // The cluster deleted the pod, and without the finalizer the pod was gone before its report could be read. After a
            // deletion by force that report isn't waited for.
            State::Failed
                if outcome.exit_code.is_none() && pod.failed && (!finalizer || pod.stripped || pod.forced_first) =>
            {
                None
            }
            State::Failed if pod.exit == Some(0) => Some("it exited with code 0"),
            State::Failed if pod.exit.is_none() && !pod.failed => Some("nothing failed"),
            State::Killed if !by_us && !deleted_outside => Some("no kill was requested, or one for another reason"),
            State::Killed if outcome.exit_code == Some(0) => Some("it finished"),
            // A pod that is held reports its end; only after a deletion by force may it be decided without that report.
            State::Killed
                if outcome.exit_code.is_none()
                    && pod.exit.is_some()
                    && finalizer
                    && !pod.stripped
                    && !pod.forced_first =>
            {
                Some("its pod reported how it ended")
            }
            // A pod that isn't recorded yet and lost its identity can't be distinguished from a forged one.
            State::Error if !submission.refused && !attempt.foreign && !attempt.changed && !unsigned => {
                Some("nothing was refused")
            }
            State::Error if pod.started => Some("its driver ran"),
            State::Lost if is_there => Some("its pod is there"),
            State::Lost if finalizer && !pod.stripped => Some("the finalizer held its pod"),
            State::Lost if submission.kill.is_some() && !deleted_outside && pod.exit.is_none() && !pod.failed => {
                Some("it was killed, by us")
            }
            _ => None,
        }
    }

    /// Checks the log that is archived as that of an attempt's driver.
    pub(crate) fn archive(&self, name: usize, uid: u64) -> Result<(), String> {
        let is_recorded = self.attempts[name].pod == Some(uid);
        let wrong = || format!("the log of pod {uid} is archived as that of attempt {name}, which has another pod");
        is_recorded.then_some(()).ok_or_else(wrong)
    }

    /// Records the start of a driver's container. A pod that isn't the recorded one can start only while a `ConfigMap`
    /// of that name outlives its owner, and only if a late writer created the pod: it is reaped like a pod that doesn't
    /// start. With the finalizer this takes a second late writer, for the `ConfigMap`. Returns whether it was the
    /// recorded pod.
    pub(crate) fn start(
        &mut self,
        name: usize,
        uid: u64,
        cluster: &Cluster,
        finalizer: bool,
        config_map: ConfigMapOf,
    ) -> Result<bool, String> {
        let pod = self.pod(uid);
        pod.started = true;
        let late = pod.copied || (pod.stray && config_map == ConfigMapOf::GoneByALateWriter);
        let recorded = pod.recorded;
        let held = finalizer && !self.pods.iter().any(|pod| pod.name == Some(name) && pod.stripped);
        if !recorded && !late && (held || config_map == ConfigMapOf::Itself) {
            return Err(format!("the driver in pod {uid} of attempt {name} started, and the pod isn't recorded"));
        }
        let other = |pod: &&Pod| submission_of(pod.name) == submission_of(name) && pod.uid != uid;
        if let Some(other) = cluster.pods().filter(other).find(|pod| self.still_runs(pod)).filter(|_| !late) {
            return Err(format!("the driver in pod {uid} of attempt {name} started beside that in pod {}", other.uid));
        }
        let truth = &mut self.attempts[name];
        truth.starts += 1;
        if truth.starts > 1 && !late {
            return Err(format!("attempt {name}: a second driver started, in pod {uid}"));
        }
        Ok(recorded)
    }

    /// Records the creation of a pod, by a writer whose claim held or not.
    pub(crate) fn create(&mut self, name: usize, uid: u64, claim_holds: bool, finalizer: bool) -> Result<(), String> {
        // An earlier pod without a finalizer may have disappeared before it was recorded: it never started.
        let excused = |pod: &PodTruth| pod.stray || (!pod.recorded && (!finalizer || pod.stripped));
        let earlier = self.pods.iter().filter(|pod| pod.name == Some(name) && !excused(pod)).count();
        *self.pod(uid) = PodTruth { name: Some(name), stray: !claim_holds, ..PodTruth::default() };
        self.attempts[name].creates += 1;
        if claim_holds && earlier > 0 {
            return Err(format!("attempt {name}: pod {uid} was created, and there was one before"));
        }
        Ok(())
    }
}
