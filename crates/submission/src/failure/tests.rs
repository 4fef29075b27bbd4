use super::{FailureCode::*, *};
use crate::Outcome;

fn failed(exit_code: impl Into<Option<i32>>, reason: &str) -> FailureCode {
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    FailureCode::for_end(State::Failed, exit_code.into(), reason, Some("words")).unwrap()
}

#[test]
fn the_page_of_failures_lists_every_code_with_its_class() {
    let page = include_str!("../../../../docs/reference/failures.md");
    for code in FailureCode::ALL {
        let row = format!("| `{code}` | {} |", code.class().as_str());
        assert!(page.contains(&row), "docs/reference/failures.md lacks {row}");
    }
}

#[test]
fn the_failure_code_of_a_failed_driver_follows_its_exit_code_and_reason() {
    for (exit_code, reason, code) in [
        (Some(3), "Error", ApplicationError),
        (Some(1), "", ApplicationError),
        (Some(137), "OOMKilled", OutOfMemory),
        (Some(137), "Error", ApplicationError),
        (Some(52), "Error", OutOfMemory),
        (Some(126), "Error", StartFailed),
        (Some(127), "ContainerCannotRun", StartFailed),
        (Some(128), "StartError", StartFailed),
        (None, "Evicted", Evicted),
        (Some(143), "Evicted", Evicted),
        (Some(143), "EvictionByEvictionAPI", Evicted),
        (None, "OutOfcpu", Evicted),
        (None, "NodeLost", NodeLost),
        (Some(143), "Terminated", NodeLost),
        (None, "NodeShutdown", NodeLost),
        (Some(143), "DeletionByTaintManager", NodeLost),
        (None, "DeletionByPodGC", NodeLost),
        (Some(137), "ContainerStatusUnknown", NodeLost),
        (Some(255), "Unknown", NodeLost),
        (Some(255), "Error", ApplicationError),
        (Some(143), "PreemptionByScheduler", Preempted),
        (None, "Preempting", Preempted),
        (Some(143), "WorkloadEvicted", Preempted),
        (None, "NotAdmitted", Evicted),
        (None, "NoMatchingWorkload", Evicted),
        (None, "ApplicationRejected", Refused),
        (None, "ResourceReservationTimeout", Unschedulable),
        (Some(143), "DeadlineExceeded", RunTimeout),
        (None, "PodFailed", Unknown),
        (None, "", Unknown),
    ] {
        assert_eq!(failed(exit_code, reason), code, "{exit_code:?} {reason}");
    }
}

#[test]
fn an_exception_of_a_full_heap_is_out_of_memory() {
    let of = |exit_code, message| FailureCode::for_end(State::Failed, exit_code, Some("Error"), Some(message));
    let heap = "the driver exited with code 1 (Error): java.lang.OutOfMemoryError: Java heap space";
    assert_eq!(of(Some(1), heap), Some(OutOfMemory));
    assert_eq!(of(Some(127), heap), Some(StartFailed));
    assert_eq!(of(None, heap), Some(Unknown));
    let refused = FailureCode::for_end(State::Error, None, Some(MEMORY_MAX), Some("no more"));
    assert_eq!(refused, Some(OutOfMemory));
}

#[test]
fn the_failure_code_of_other_ends_follows_their_cause() {
    let of = |state, reason, message| FailureCode::for_end(state, None, reason, message);
    let quota = r#"pods "pi" is forbidden: exceeded quota: none, requested: pods=1"#;
    for (state, reason, message, code) in [
        (State::Killed, Some("Killed"), None, Some(KilledOnRequest)),
        (State::Killed, Some("StartTimeout"), None, Some(StartTimeout)),
        (State::Killed, Some("RunTimeout"), None, Some(RunTimeout)),
        (State::Killed, Some("PodDeleted"), None, Some(PodDeleted)),
        (State::Killed, Some("Error"), None, Some(PodDeleted)),
        (State::Killed, None, None, Some(PodDeleted)),
        (State::Lost, Some("PodGone"), None, Some(Lost)),
        (State::Error, Some("Forbidden"), Some(quota), Some(QuotaExceeded)),
        (State::Error, Some("Forbidden"), Some("may not create pods"), Some(Refused)),
        (State::Error, Some("Invalid"), Some("exceeded quota, says a label"), Some(Refused)),
        (State::Finished, Some("Completed"), None, None),
        (State::Running, None, None, None),
    ] {
        assert_eq!(of(state, reason, message), code, "{state} {reason:?}");
    }
    for state in State::ALL {
        let failed = state.is_terminal() && state != State::Finished;
        assert_eq!(of(state, None, None).is_some(), failed, "{state}");
    }
}

#[test]
fn the_failure_code_of_a_waiting_submission_says_what_it_waits_for() {
    for (state, reason, message, code) in [
        (State::Queued, None, None, Queued),
        (State::Launching, None, Some(""), Queued),
        (State::Launching, None, Some("the Kubernetes API is not available"), ClusterUnavailable),
        (State::Pending, None, None, Starting),
        (State::Pending, Some("PodInitializing"), Some(""), Starting),
        (State::Pending, Some("ErrImagePull"), Some("no such image"), ImagePull),
        (State::Pending, Some("ImagePullBackOff"), None, ImagePull),
        (State::Pending, Some("InvalidImageName"), None, ImagePull),
        (State::Pending, Some("Unschedulable"), Some("0/3 nodes are available"), Unschedulable),
        (State::Pending, Some("SchedulingGated"), Some("the gate of a queue"), Queued),
        (State::Queued, Some("QueueCap"), Some("no room"), Queued),
        (State::Queued, Some("Held"), Some("held by corp:alice"), Held),
        (State::Launching, Some("QuotaExceeded"), Some("exceeded quota: q"), QuotaExceeded),
        (State::Launching, Some("NotNow"), Some("denied the request"), Refused),
        (State::Launching, Some("NamespaceNotFound"), Some("not found"), ConfigMissing),
        (State::Pending, Some("CreateContainerConfigError"), None, ConfigMissing),
        (State::Pending, Some("FailedMount"), None, ConfigMissing),
        (State::Pending, Some("CreateContainerError"), None, StartFailed),
        (State::Killing, Some("Killed"), Some("killed on request"), KilledOnRequest),
        (State::Killing, Some("StartTimeout"), Some("not running within 10m"), StartTimeout),
        (State::Killing, Some("RunTimeout"), None, RunTimeout),
    ] {
        assert_eq!(FailureCode::for_row(state, None, reason, message), Some(code), "{state} {reason:?} {message:?}");
    }
}

#[test]
fn only_unintended_failures_that_may_not_repeat_are_retried() {
    let retried = |kind| -> Vec<_> {
        FailureCode::ALL.iter().filter(|code| code.retry_kind() == Some(kind)).map(|code| code.as_str()).collect()
    };
    assert_eq!(retried(RetryKind::Infrastructure), ["EVICTED", "NODE_LOST", "PREEMPTED", "LOST"]);
    assert_eq!(retried(RetryKind::Requeue), [""; 0], "a reason decides, not a code");
    let evicted = |state| Outcome::new(state, EVICTED_BY_KUEUE, "preempted");
    assert_eq!(evicted(State::Failed).retry_kind(), Some(RetryKind::Requeue));
    assert_eq!(evicted(State::Killed).retry_kind(), None);
    assert_eq!(retried(RetryKind::Application), ["OUT_OF_MEMORY", "APPLICATION_ERROR", "START_FAILED"]);
    assert_eq!(retried(RetryKind::Capacity), ["UNSCHEDULABLE"]);
    assert_eq!(retried(RetryKind::Quota), ["QUOTA_EXCEEDED"]);
    for code in FailureCode::ALL {
        let class = match code.retry_kind() {
            Some(RetryKind::Application) => "application",
            Some(RetryKind::Infrastructure) => "infrastructure",
            Some(RetryKind::Capacity | RetryKind::Quota) => "capacity",
            Some(RetryKind::Requeue) | None => continue,
        };
        assert_eq!(code.class().as_str(), class, "{code}");
    }
    let refused = |message: &str| Outcome::new(State::Error, "Forbidden", message).retry_kind();
    assert_eq!(refused("pods is forbidden: exceeded quota: q"), Some(RetryKind::Quota), "a quota may grow");
    assert_eq!(refused("denied by a policy"), None);
    assert_eq!(Outcome::new(State::Error, "MemoryMax", "full").retry_kind(), None);
}

#[test]
fn an_exit_code_above_128_is_a_signal() {
    let named = [(137, "SIGKILL"), (143, "SIGTERM"), (139, "SIGSEGV"), (134, "SIGABRT"), (130, "SIGINT")];
    for (code, name) in named {
        assert_eq!(signal(code), Some(name), "{code}");
    }
    for code in [0, 1, 9, 128, 255, -1, i32::MIN] {
        assert_eq!(signal(code), None, "{code}");
    }
}

#[test]
fn every_code_is_that_of_a_row_and_has_its_word() {
    for code in FailureCode::ALL {
        assert!(RULES.iter().any(|rule| rule.code == *code), "{code} stands in no rule");
        assert_eq!(code.as_str().parse(), Ok(*code));
    }
    assert!("OOM".parse::<FailureCode>().is_err());
}
