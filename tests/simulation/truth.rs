//! What really happened to each pod and submission, and whether what the gateway says of it is true.

use sparkgate::submission::{Outcome, State};

use crate::{
    cluster::{Cluster, uid_number},
    store::{Store, Time},
};

/// The life of one driver pod.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PodTruth {
    pub(crate) submission: Option<usize>,
    /// Made by a writer whose claim was lost.
    pub(crate) stray: bool,
    pub(crate) started: bool,
    /// The driver's exit code, once its node told the API server.
    pub(crate) exit: Option<i32>,
    /// The API server was told that the pod failed, without an exit code.
    pub(crate) failed: bool,
    /// When the API server was told either.
    pub(crate) ended_at: Option<Time>,
    pub(crate) deleted_outside: bool,
    /// It was being deleted without grace before its end was told.
    pub(crate) forced_first: bool,
    pub(crate) stripped: bool,
    pub(crate) recorded: bool,
}

/// Whose `ConfigMap` a driver starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigMapOf {
    Itself,
    /// That of a pod which went a moment ago; garbage collection hasn't come yet.
    Gone,
    /// The same, and it was made by a writer whose claim was lost or whose submission had ended.
    GoneByALateWriter,
}

/// The life of one submission.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    pub(crate) creates: u32,
    pub(crate) starts: u32,
    /// The pod that was recorded.
    pod: Option<u64>,
    pub(crate) kill_requested: bool,
    /// Something that the cluster or we refused.
    pub(crate) refused: bool,
    /// A foreign pod stood under the name.
    pub(crate) foreign: bool,
    /// An object that was made before the pod may be left: a late writer made it, or the pod came to its end, by others,
    /// before it was handed over. It starts nothing; clean-up removes it with the row's pod.
    pub(crate) may_leave_an_object: bool,
    pub(crate) outcome: Option<Outcome>,
    /// The events that were checked.
    events: usize,
    pub(crate) retired: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Truths {
    pub(crate) submissions: Vec<Truth>,
    /// By uid.
    pub(crate) pods: Vec<PodTruth>,
}

impl Truth {
    pub(crate) fn new(refused: bool) -> Self {
        Self { refused, ..Self::default() }
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

    /// Looks at a row after a write: nothing moves backwards, an end is the only one and a true one. Answers the state of
    /// an end that is new.
    pub(crate) fn check(
        &mut self,
        store: &Store,
        cluster: &Cluster,
        finalizer: bool,
        submission: usize,
    ) -> Result<Option<State>, String> {
        let Some(row) = store.row(submission) else {
            let truth = &self.submissions[submission];
            return if truth.retired { Ok(None) } else { Err(format!("the accepted row {submission} is gone")) };
        };
        let recorded = row.pod_uid.as_deref().map(uid_number);
        if let Some(uid) = recorded {
            self.pod(uid).recorded = true;
        }
        let truth = &mut self.submissions[submission];
        if truth.pod.is_some() && truth.pod != recorded {
            return Err(format!("row {submission} had the pod {:?}, and has {recorded:?} now", truth.pod));
        }
        truth.pod = recorded;
        let known = truth.events;
        truth.events = row.events.len();
        for pair in row.events[known.saturating_sub(1)..].windows(2) {
            if !pair[0].may_become(pair[1]) {
                return Err(format!("row {submission} moved from {} to {}", pair[0], pair[1]));
            }
        }
        if row.events.last() != Some(&row.state) {
            return Err(format!("row {submission} is {}, and its events end with {:?}", row.state, row.events.last()));
        }
        if row.state.is_terminal() != row.outcome.is_some() {
            return Err(format!("row {submission} is {}, with the outcome {:?}", row.state, row.outcome));
        }
        match (&truth.outcome, &row.outcome) {
            (Some(before), now) if now.as_ref() != Some(before) => {
                Err(format!("row {submission} ended with {before:?}, and now says {now:?}"))
            }
            (None, Some(outcome)) => {
                truth.outcome = Some(outcome.clone());
                match self.lie(cluster, finalizer, submission, outcome, recorded) {
                    Some(lie) => Err(format!("row {submission} ended with {outcome:?} (pod {recorded:?}): {lie}")),
                    None => Ok(Some(outcome.state)),
                }
            }
            _ => Ok(None),
        }
    }

    /// What is wrong about an outcome.
    fn lie(
        &self,
        cluster: &Cluster,
        finalizer: bool,
        submission: usize,
        outcome: &Outcome,
        recorded: Option<u64>,
    ) -> Option<&'static str> {
        let truth = &self.submissions[submission];
        let pod = recorded.map(|uid| self.pods[uid as usize]).unwrap_or_default();
        let deleted_outside = self.pods.iter().any(|pod| pod.submission == Some(submission) && pod.deleted_outside);
        let is_there = recorded.is_some_and(|uid| cluster.pod(uid).is_some());
        if outcome.exit_code.is_some() && outcome.exit_code != pod.exit {
            return Some("nobody exited with this code");
        }
        match outcome.state {
            State::Finished if pod.exit != Some(0) => Some("it didn't exit with code 0"),
            State::Failed if pod.exit == Some(0) => Some("it exited with code 0"),
            State::Failed if pod.exit.is_none() && !pod.failed => Some("nothing failed"),
            State::Killed if !truth.kill_requested && !deleted_outside => Some("nobody asked for its end"),
            // A pod that is held tells its end; only what was deleted by force before may be decided without.
            State::Killed if outcome.exit_code == Some(0) => Some("it finished"),
            // A pod that is held tells its end; only what was deleted by force before may be decided without.
            State::Killed
                if outcome.exit_code.is_none()
                    && pod.exit.is_some()
                    && finalizer
                    && !pod.stripped
                    && !pod.forced_first =>
            {
                Some("its pod told how it ended")
            }
            State::Error if !truth.refused && !truth.foreign => Some("nothing was refused"),
            State::Error if pod.started => Some("its driver ran"),
            State::Lost if is_there => Some("its pod is there"),
            State::Lost if finalizer && !pod.stripped => Some("the finalizer held its pod"),
            State::Lost if truth.kill_requested && !deleted_outside && pod.exit.is_none() && !pod.failed => {
                Some("it was killed on request, by us")
            }
            _ => None,
        }
    }

    /// A driver's container starts. A pod that isn't the recorded one can do so within the moment in which a `ConfigMap`
    /// of that name outlives its owner, if a late writer made the pod: it is reaped like one that doesn't start. With the
    /// finalizer it takes a second late writer, for the `ConfigMap`. Answers whether it was the recorded one.
    pub(crate) fn start(
        &mut self,
        submission: usize,
        uid: u64,
        finalizer: bool,
        config_map: ConfigMapOf,
    ) -> Result<bool, String> {
        let pod = self.pod(uid);
        pod.started = true;
        let (recorded, late) = (pod.recorded, pod.stray && config_map == ConfigMapOf::GoneByALateWriter);
        let held = finalizer && !self.pods.iter().any(|pod| pod.submission == Some(submission) && pod.stripped);
        if !recorded && !late && (held || config_map == ConfigMapOf::Itself) {
            return Err(format!("the driver in pod {uid} of row {submission} started, and the pod isn't recorded"));
        }
        let truth = &mut self.submissions[submission];
        truth.starts += 1;
        if truth.starts > 1 && !late {
            return Err(format!("row {submission}: a second driver started, in pod {uid}"));
        }
        Ok(recorded)
    }

    /// A pod was created, by a writer whose claim held or not.
    pub(crate) fn create(
        &mut self,
        submission: usize,
        uid: u64,
        claim_holds: bool,
        finalizer: bool,
    ) -> Result<(), String> {
        // An earlier one that nothing held may have gone before it was recorded: it never started.
        let excused = |pod: &PodTruth| pod.stray || (!pod.recorded && (!finalizer || pod.stripped));
        let earlier = self.pods.iter().filter(|pod| pod.submission == Some(submission) && !excused(pod)).count();
        *self.pod(uid) = PodTruth { submission: Some(submission), stray: !claim_holds, ..PodTruth::default() };
        self.submissions[submission].creates += 1;
        if claim_holds && earlier > 0 {
            return Err(format!("row {submission}: pod {uid} was created, and there was one before"));
        }
        Ok(())
    }
}
