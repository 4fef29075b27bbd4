//! The outcome that a submission should have.

use super::{Row, Unseen};
use crate::harness::truth::{Played, PodTruth};

/// The actions of others on a submission.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByOthers {
    /// A client requested a kill, or a session was idle.
    pub(super) kill_asked: bool,
    /// A pod was created under the name of its driver, or a webhook denies its pods.
    pub(super) refused: bool,
}

/// Checks that the row agrees with what happened to its pod. Labels, annotations and forged pods change nothing.
///
/// # Errors
/// The outcome that should have been recorded.
pub(super) fn expected(row: &Row, pod: Option<&PodTruth>, by_others: ByOthers, unseen: Unseen) -> Result<(), String> {
    let ByOthers { kill_asked, refused } = by_others;
    let Some(pod) = pod else {
        // Killed before it had a pod, or its pod couldn't be created.
        let without = (kill_asked && is(row, "KILLED", None)) || (refused && is(row, "ERROR", None));
        return if without { Ok(()) } else { Err("no pod of it was ever seen".to_owned()) };
    };
    let Some(played) = pod.played else { return Err(format!("its pod still lives: {pod:?}")) };
    let (state, exit_code, reason) = match played {
        Played::Exited(0) => ("FINISHED", Some(0), None),
        Played::Exited(code) => ("FAILED", Some(code), None),
        Played::OutOfMemory => ("FAILED", Some(137), Some("OOMKilled")),
        Played::Evicted => ("FAILED", None, Some("Evicted")),
        Played::NodeVanished => ("FAILED", None, Some("DeletionByPodGC")),
        Played::Preempted => ("FAILED", Some(143), Some("PreemptionByScheduler")),
        Played::Terminated => ("KILLED", Some(143), None),
        Played::ForceDeleted | Played::NeverStarted => ("KILLED", None, None),
    };
    let deleted_by_us =
        matches!(played, Played::Terminated | Played::ForceDeleted | Played::NeverStarted) && !pod.by_others;
    if deleted_by_us && !kill_asked {
        return Err(format!("its pod was deleted without a request: {pod:?}"));
    }
    if is(row, state, exit_code) && reason.is_none_or(|reason| row.reason.as_deref() == Some(reason)) {
        return Ok(());
    }
    // A pod that is deleted without a grace period may disappear before its end is reported.
    if pod.forced && (is(row, state, None) || (kill_asked && is(row, "KILLED", None))) {
        return Ok(());
    }
    // Without our finalizer a pod may disappear before its end is seen.
    let was_held = !pod.unheld && !pod.was_disguised();
    if !was_held && pod.gone && (is(row, "LOST", None) || (pod.by_others && is(row, "KILLED", None))) {
        return Ok(());
    }
    // A kill, or a deletion by others, that came while the container ended: Kubernetes' times have whole seconds.
    if (kill_asked || pod.by_others) && state == "FAILED" && is(row, "KILLED", exit_code) {
        return Ok(());
    }
    if unseen == Unseen::Deleted && pod.gone && is(row, "LOST", None) {
        return Ok(());
    }
    Err(format!("should be {state}, exit code {exit_code:?} {}, since {pod:?}", reason.unwrap_or_default()))
}

fn is(row: &Row, state: &str, exit_code: Option<i32>) -> bool {
    row.state == state && row.exit_code == exit_code
}
