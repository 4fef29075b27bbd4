//! What follows from Kueue's decisions and from the ends of attempts. One replica does it for all.

use std::{
    collections::BTreeSet,
    sync::PoisonError,
    time::{Duration, Instant},
};

use chrono::Utc;
use futures::{StreamExt, stream::select_all};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Kueue;
use sparkgate_cluster::kueue::{self, PendingReason, Workload, WorkloadNews, WorkloadState};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_submission::{State, engine::Row};

/// How often all `Workload`s are looked at, whatever the watches report: pods end without a change of their `Workload`.
const PERIOD: Duration = Duration::from_secs(5);
/// When a launch whose `Workload` is gone is looked for again: by then it has written its pause.
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// How often a launch is asked for another `Workload` at most.
const SELDOM: Duration = Duration::from_secs(10);

/// What is done about a `Workload`.
#[derive(Debug, PartialEq, Eq)]
enum Deed {
    Nothing,
    /// The launch asks Kueue again.
    AskAgain,
    /// Kueue is told that the pods run, if they do.
    SetReady,
    /// The driver is ended: Kueue takes its quota back.
    Evict {
        pod: String,
        uid: String,
        why: String,
    },
    /// The `Workload` is deleted, once its pods have ended.
    Delete,
}

impl Kueue {
    /// Follows the `Workload`s of all queues. A namespace whose queues leave Kueue is followed on, for the attempts that they admitted.
    pub(super) async fn follow(&self) {
        let mut followed = self.namespaces();
        loop {
            match self.api().await {
                Ok(Some(kueue)) => self.follow_with(&kueue, &mut followed).await,
                Ok(None) => {
                    tracing::warn!(retry_in = ?PERIOD, "queues of Kueue wait: the cluster doesn't serve its API");
                    // There are no Workloads.
                    followed = self.namespaces();
                    if followed.is_empty() {
                        return;
                    }
                }
                Err(error) => report("all", &error.into()),
            }
            sleep(PERIOD).await;
        }
    }

    /// Follows them until the API server answers for none of the namespaces: it may serve another version. Namespaces are added as the
    /// access file names them.
    async fn follow_with(&self, kueue: &kueue::Kueue, followed: &mut BTreeSet<String>) {
        let watch = |namespace: &String| {
            let namespace = namespace.clone();
            kueue.watch_workloads(&namespace).map(move |news| (namespace.clone(), news)).boxed()
        };
        let mut news = select_all(followed.iter().map(watch));
        let mut due = interval(PERIOD);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = due.tick() => {
                    for namespace in self.namespaces() {
                        if !followed.contains(&namespace) {
                            news.push(watch(&namespace));
                            followed.insert(namespace);
                        }
                    }
                    let mut answers = false;
                    for namespace in &*followed {
                        // One that can't be followed doesn't keep the others waiting.
                        match self.look_at_all(kueue, namespace).await {
                            Ok(()) => answers = true,
                            Err(error) => report(namespace, &error),
                        }
                    }
                    if !answers {
                        self.forget_api().await;
                        return;
                    }
                }
                Some((namespace, news)) = news.next() => {
                    if let Err(error) = self.take_news(kueue, &namespace, news).await {
                        report(&namespace, &error);
                    }
                }
            }
        }
    }

    async fn look_at_all(&self, kueue: &kueue::Kueue, namespace: &str) -> Result<(), Error> {
        let workloads = kueue.list_workloads(namespace).await?;
        let ids: Vec<&str> = workloads.iter().map(|workload| workload.submission.as_str()).collect();
        let rows = self.store.rows(&ids).await?;
        let mut looked = Ok(());
        for workload in &workloads {
            let row = rows.get(&workload.submission);
            looked = looked.and(self.look_at(kueue, namespace, workload, row).await);
        }
        looked
    }

    async fn take_news(&self, kueue: &kueue::Kueue, namespace: &str, news: WorkloadNews) -> Result<(), Error> {
        match news {
            WorkloadNews::Changed(workload) => {
                let row = self.store.row(&workload.submission).await?;
                self.look_at(kueue, namespace, &workload, row.as_ref()).await
            }
            WorkloadNews::Gone(workload) => {
                let row = self.store.row(&workload.submission).await?;
                let Some((row, pod, uid)) = row.as_ref().and_then(|row| driver_of(&workload, row)) else {
                    if row.is_some_and(|row| waits_for(&workload, &row)) {
                        self.ask_again_soon(&workload);
                    }
                    return Ok(());
                };
                // The watch may be behind: the Workload may exist again.
                if row.state == State::Killing || kueue.workload(namespace, &workload.name).await?.is_some() {
                    return Ok(());
                }
                self.evict(kueue, namespace, &workload, (&pod, &uid), "the Workload was deleted").await
            }
            WorkloadNews::Interrupted(error) => {
                tracing::debug!(namespace, "the watch of Workloads was interrupted: {error}");
                Ok(())
            }
        }
    }

    /// Lets a launch whose `Workload` was deleted ask for another one. If the launch deleted it itself, its pause may not be written yet. A
    /// client that deletes each one is waited for as long as the pause is.
    fn ask_again_soon(&self, workload: &Workload) {
        {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.retain(|_, at| at.elapsed() < SELDOM);
            if asked.insert(workload.submission.clone(), Instant::now()).is_some() {
                return;
            }
        }
        let (store, wakeups) = (self.store.clone(), self.wakeups.clone());
        let (submission, attempt) = (workload.submission.clone(), workload.attempt);
        tokio::spawn(async move {
            for pause in [Duration::ZERO, SECOND_LOOK] {
                sleep(pause).await;
                if store.ask_again(&submission, attempt).await.is_ok_and(|asked| asked) {
                    return wakeups.work_is_due();
                }
            }
        });
    }

    /// Does what follows from the state of a `Workload` and that of its attempt.
    async fn look_at(
        &self,
        kueue: &kueue::Kueue,
        namespace: &str,
        workload: &Workload,
        row: Option<&Row>,
    ) -> Result<(), Error> {
        let Workload { submission, attempt, .. } = workload;
        match deed(workload, row) {
            Deed::Nothing => Ok(()),
            Deed::AskAgain => {
                if self.store.ask_again(submission, *attempt).await? {
                    self.wakeups.work_is_due();
                }
                Ok(())
            }
            Deed::SetReady => {
                let pods = kueue.pods_of(namespace, submission, *attempt).await?;
                if pods.driver_runs && pods.running_executors >= workload.least_executors as usize {
                    kueue.set_pods_ready(namespace, workload, Utc::now()).await?;
                }
                Ok(())
            }
            Deed::Evict { pod, uid, why } => {
                // The news may be older than the driver, which another `Workload` of that name has admitted.
                let now = kueue.workload(namespace, &workload.name).await?.filter(|now| now.uid == workload.uid);
                if !now.is_some_and(|now| matches!(deed(&now, row), Deed::Evict { .. })) {
                    return Ok(());
                }
                self.evict(kueue, namespace, workload, (&pod, &uid), &why).await
            }
            Deed::Delete => {
                let pods = kueue.pods_of(namespace, submission, *attempt).await?;
                if pods.live == 0 {
                    kueue.delete_workload(namespace, workload).await?;
                }
                Ok(())
            }
        }
    }

    async fn evict(
        &self,
        kueue: &kueue::Kueue,
        namespace: &str,
        workload: &Workload,
        (pod, uid): (&str, &str),
        why: &str,
    ) -> Result<(), Error> {
        let Workload { submission, attempt, .. } = workload;
        tracing::info!(%submission, attempt, pod = %format_args!("{namespace}/{pod}"), "Kueue takes the quota of the driver back: {why}");
        Ok(kueue.evict_driver(namespace, (pod, uid), why, Utc::now()).await?)
    }
}

fn report(namespace: &str, error: &Error) {
    tracing::warn!(namespace, retry_in = ?PERIOD, "following Kueue's Workloads failed: {}", error_chain(error));
}

/// Decides what is done about a `Workload`.
fn deed(workload: &Workload, row: Option<&Row>) -> Deed {
    let Some(row) = row else { return Deed::Delete };
    if row.attempt < workload.attempt {
        // The database was restored from a backup: the row gets there.
        return Deed::Nothing;
    }
    if row.attempt > workload.attempt || row.state.is_terminal() {
        return Deed::Delete;
    }
    let why = match &workload.state {
        // A kill ends the driver by itself.
        _ if row.state == State::Killing => return Deed::Nothing,
        WorkloadState::Pending { reason: PendingReason::ExceedsMaxQuota, .. } => return Deed::AskAgain,
        WorkloadState::Pending { .. } => return Deed::Nothing,
        WorkloadState::Admitted(_) => match row.state {
            State::Queued | State::Launching => return Deed::AskAgain,
            _ if workload.is_ready => return Deed::Nothing,
            _ => return Deed::SetReady,
        },
        WorkloadState::Evicted { reason, message, .. } => format!("{}: {message}", reason.as_str()),
        WorkloadState::Deactivated { message } => message.clone(),
        WorkloadState::Finished { message } => format!("another client finished the Workload: {message}"),
    };
    match driver_of(workload, row) {
        Some((_, pod, uid)) => Deed::Evict { pod, uid, why },
        None if matches!(workload.state, WorkloadState::Deactivated { .. }) => Deed::Nothing,
        None => Deed::AskAgain,
    }
}

/// Returns the driver pod of a `Workload`, if it is that of the present attempt and the pod is recorded.
fn driver_of<'a>(workload: &Workload, row: &'a Row) -> Option<(&'a Row, String, String)> {
    let is_live = row.attempt == workload.attempt && !row.state.is_terminal();
    let (pod, uid) = row.pod.clone().zip(row.pod_uid.clone()).filter(|_| is_live)?;
    Some((row, pod, uid))
}

/// Returns whether a launch has created the `Workload`, and no pod yet.
fn waits_for(workload: &Workload, row: &Row) -> bool {
    row.attempt == workload.attempt && row.state == State::Launching && row.pod_uid.is_none()
}

#[cfg(test)]
mod tests {
    use sparkgate_cluster::kueue::{Admission, EvictionReason};
    use sparkgate_submission::KillCause;

    use super::*;

    fn workload(state: WorkloadState) -> Workload {
        Workload {
            name: "pi-driver".to_owned(),
            uid: "w".to_owned(),
            submission: "driver-20260101000000-0001".parse().unwrap(),
            attempt: 2,
            local_queue: "batch".to_owned(),
            state,
            is_ready: false,
            least_executors: 1,
        }
    }

    /// Returns a row whose second attempt has a pod.
    fn row(state: State) -> Row {
        Row {
            state,
            attempt: 2,
            namespace: "jobs".to_owned(),
            pod: Some("pi-driver".to_owned()),
            pod_uid: Some("u".to_owned()),
            kill: KillCause::Request,
        }
    }

    fn without_pod() -> Row {
        Row { pod_uid: None, ..row(State::Launching) }
    }

    fn evicted() -> WorkloadState {
        WorkloadState::Evicted {
            reason: EvictionReason::Preempted,
            message: "for another".to_owned(),
            requeue_at: None,
        }
    }

    fn pending(reason: PendingReason) -> WorkloadState {
        WorkloadState::Pending { reason, message: String::new() }
    }

    fn admitted() -> WorkloadState {
        WorkloadState::Admitted(Admission::default())
    }

    fn done(state: WorkloadState, row: &Row) -> Deed {
        deed(&workload(state), Some(row))
    }

    #[test]
    fn a_launch_asks_again_when_kueue_has_decided() {
        assert_eq!(done(admitted(), &without_pod()), Deed::AskAgain);
        assert_eq!(done(pending(PendingReason::ExceedsMaxQuota), &without_pod()), Deed::AskAgain);
        assert_eq!(done(evicted(), &without_pod()), Deed::AskAgain, "it joins the queue again");
        assert_eq!(done(pending(PendingReason::WaitingForQuota), &without_pod()), Deed::Nothing);
        let deactivated = WorkloadState::Deactivated { message: String::new() };
        assert_eq!(done(deactivated, &without_pod()), Deed::Nothing, "until an operator activates it");
    }

    #[test]
    fn a_driver_ends_when_its_quota_is_taken_back() {
        let evict = |why: &str| Deed::Evict { pod: "pi-driver".to_owned(), uid: "u".to_owned(), why: why.to_owned() };
        for state in [State::Launching, State::Pending, State::Running] {
            assert_eq!(done(evicted(), &row(state)), evict("Preempted: for another"));
        }
        let deactivated = WorkloadState::Deactivated { message: "by its operator".to_owned() };
        assert_eq!(done(deactivated, &row(State::Running)), evict("by its operator"));
        assert_eq!(done(evicted(), &row(State::Killing)), Deed::Nothing, "the kill ends it");
    }

    #[test]
    fn kueue_is_told_once_that_the_pods_run() {
        assert_eq!(done(admitted(), &row(State::Running)), Deed::SetReady);
        let ready = Workload { is_ready: true, ..workload(admitted()) };
        assert_eq!(deed(&ready, Some(&row(State::Running))), Deed::Nothing);
    }

    #[test]
    fn the_workload_of_an_ended_attempt_is_deleted_and_that_of_a_later_one_is_left_alone() {
        assert_eq!(deed(&workload(admitted()), None), Deed::Delete);
        assert_eq!(done(admitted(), &row(State::Finished)), Deed::Delete);
        assert_eq!(done(evicted(), &Row { attempt: 3, ..without_pod() }), Deed::Delete);
        assert_eq!(done(admitted(), &Row { attempt: 1, ..row(State::Running) }), Deed::Nothing);
    }
}
