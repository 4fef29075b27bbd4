use super::*;

fn observed(phase: Phase, container: Container) -> PodObservation {
    PodObservation {
        submission: "driver-20260101000000-0001".parse().unwrap(),
        attempt: 1,
        namespace: "spark".to_owned(),
        pod: "pi-driver".to_owned(),
        forced: false,
        asked_to_go_at: None,
        holds_finalizer: true,
        pod_uid: "u".to_owned(),
        genuine: true,
        labelled: true,
        phase,
        deleting: false,
        gone: false,
        node: None,
        pod_ip: None,
        reason: None,
        message: None,
        container,
        restarted_by: None,
        rerun: None,
        reservation: Default::default(),
    }
}

fn exit(code: i32) -> Container {
    Container::Terminated {
        exit_code: code,
        reason: Some("Error".to_owned()),
        message: None,
        started_at: None,
        finished_at: None,
    }
}

fn outcome(state: State, observed: &PodObservation) -> Outcome {
    match transition(state, &KillCause::Request, observed) {
        Transition::Ended(outcome) => outcome,
        other => panic!("not an end: {other:?}"),
    }
}

#[test]
fn the_exit_code_of_the_driver_decides_and_is_recorded() {
    let failed = outcome(State::Running, &observed(Phase::Failed, exit(3)));
    assert_eq!((failed.state, failed.exit_code, failed.reason.as_deref()), (State::Failed, Some(3), Some("Error")));
    assert_eq!(failed.message, "the driver exited with code 3 (Error)");
    // A sidecar may keep the pod running.
    assert_eq!(outcome(State::Running, &observed(Phase::Running, exit(0))).state, State::Finished);
}

#[test]
fn a_driver_that_succeeds_during_a_kill_is_finished() {
    assert_eq!(outcome(State::Killing, &observed(Phase::Failed, exit(143))).state, State::Killed);
    assert_eq!(outcome(State::Killing, &observed(Phase::Succeeded, exit(0))).state, State::Finished);
    let gone = PodObservation { gone: true, ..observed(Phase::Running, Container::Running { started_at: None }) };
    assert_eq!(outcome(State::Killing, &gone).state, State::Killed);
}

#[test]
fn a_submission_whose_pod_disappeared_is_lost_and_one_whose_pod_was_deleted_is_killed() {
    let gone = PodObservation { gone: true, ..observed(Phase::Running, Container::Running { started_at: None }) };
    assert_eq!(outcome(State::Running, &gone).state, State::Lost);
    assert_eq!(outcome(State::Running, &PodObservation { deleting: true, ..gone }).state, State::Killed);
    let deleted = PodObservation { deleting: true, ..observed(Phase::Failed, exit(143)) };
    assert_eq!(outcome(State::Running, &deleted).state, State::Killed);
}

#[test]
fn an_eviction_is_a_failure_with_the_kubelets_message() {
    let evicted = PodObservation {
        reason: Some("Evicted".to_owned()),
        message: Some("low on memory".to_owned()),
        ..observed(Phase::Failed, Container::Absent)
    };
    let outcome = outcome(State::Running, &evicted);
    assert_eq!((outcome.state, outcome.reason.as_deref()), (State::Failed, Some("Evicted")));
    assert!(outcome.message.contains("low on memory"));
}

#[test]
fn a_waiting_pod_has_a_reason_and_terminal_states_are_never_left() {
    let pull = Container::Waiting { reason: Some("ErrImagePull".to_owned()), message: Some("no such".to_owned()) };
    let waiting = Transition::Waiting { reason: "ErrImagePull".to_owned(), message: "no such".to_owned() };
    assert_eq!(transition(State::Pending, &KillCause::Request, &observed(Phase::Pending, pull)), waiting);
    assert_eq!(
        transition(State::Running, &KillCause::Request, &observed(Phase::Unknown, Container::Absent)),
        Transition::Stay
    );
    assert_eq!(transition(State::Killed, &KillCause::Request, &observed(Phase::Succeeded, exit(0))), Transition::Stay);
}

#[test]
fn a_pod_that_the_cluster_ends_has_failed_and_one_that_a_client_deletes_was_killed() {
    let deleted = |phase, container| PodObservation { deleting: true, ..observed(phase, container) };
    let by_cluster = |observed| PodObservation { reason: Some("PreemptionByScheduler".to_owned()), ..observed };
    for pod in [
        deleted(Phase::Failed, Container::Absent),
        deleted(Phase::Failed, exit(143)),
        PodObservation { forced: true, ..deleted(Phase::Pending, Container::Absent) },
        PodObservation { gone: true, ..deleted(Phase::Running, Container::Running { started_at: None }) },
    ] {
        assert_eq!(outcome(State::Running, &pod).state, State::Killed, "{pod:?}");
        let failed = outcome(State::Running, &by_cluster(pod));
        assert_eq!((failed.state, failed.reason.as_deref()), (State::Failed, Some("PreemptionByScheduler")));
    }
}

#[test]
fn a_driver_that_had_failed_before_its_pod_was_deleted_has_failed() {
    let at = |second: u32| Some(format!("2026-01-01T00:00:{second:02}.5Z").parse().unwrap());
    let ended = |exit_code, finished, asked| PodObservation {
        deleting: true,
        asked_to_go_at: asked,
        ..observed(
            Phase::Failed,
            Container::Terminated { exit_code, reason: None, message: None, started_at: None, finished_at: finished },
        )
    };
    let failed = outcome(State::Running, &ended(7, at(9), at(10)));
    assert_eq!((failed.state, failed.exit_code), (State::Failed, Some(7)));
    for (finished, asked) in [(at(10), at(10)), (at(11), at(10)), (None, at(10)), (at(9), None)] {
        assert_eq!(outcome(State::Running, &ended(7, finished, asked)).state, State::Killed, "{finished:?} {asked:?}");
    }
    assert_eq!(outcome(State::Running, &ended(0, at(11), at(10))).state, State::Finished);
    assert_eq!(outcome(State::Killing, &ended(7, at(9), at(10))).state, State::Killed, "on request, and says so");
}

#[test]
fn the_end_of_a_killed_driver_has_the_cause_of_the_kill() {
    let late = KillCause::RunTimeout("still running after 2h: killed".to_owned());
    let Transition::Ended(outcome) = transition(State::Killing, &late, &observed(Phase::Failed, exit(143))) else {
        panic!()
    };
    assert_eq!((outcome.state, outcome.reason.as_deref()), (State::Killed, Some("RunTimeout")));
    assert_eq!(outcome.message, "still running after 2h: killed; the driver exited with code 143 (Error)");
    let gone = PodObservation { gone: true, ..observed(Phase::Running, Container::Running { started_at: None }) };
    assert_eq!(transition(State::Killing, &late, &gone), Transition::Ended(Outcome::killed(&late)));
    // No kill is in progress: the cause in the row belongs to no attempt that is being killed.
    assert_eq!(transition(State::Running, &late, &gone), Transition::Ended(Outcome::pod_gone()));
}

#[test]
fn a_driver_that_never_started_has_no_exit_code() {
    let unknown = Container::Terminated {
        exit_code: 137,
        reason: Some("ContainerStatusUnknown".to_owned()),
        message: None,
        started_at: None,
        finished_at: None,
    };
    let killed = outcome(State::Killing, &observed(Phase::Failed, unknown.clone()));
    let words = "the driver didn't start, or its node lost track of it (ContainerStatusUnknown)";
    assert_eq!((killed.state, killed.exit_code), (State::Killed, None));
    assert_eq!(killed.message, format!("{}; {words}", KillCause::Request.message()));
    let failed = outcome(State::Pending, &observed(Phase::Failed, unknown));
    assert_eq!((failed.state, failed.exit_code, failed.message.as_str()), (State::Failed, None, words));
}
