use super::*;

fn observed(phase: Phase, container: Container) -> ExecutorObservation {
    ExecutorObservation {
        submission: "driver-20260101000000-0001".parse().unwrap(),
        attempt: 1,
        executor_id: 3,
        driver_uid: "driver".to_owned(),
        pod_name: "pi-exec-3".to_owned(),
        pod_uid: "u".to_owned(),
        phase,
        deleting: false,
        gone: false,
        node: None,
        reason: None,
        message: None,
        container,
        created_at: None,
        reservation: Default::default(),
    }
}

fn exit(code: i32, reason: &str) -> Container {
    Container::Terminated {
        exit_code: code,
        reason: Some(reason.to_owned()),
        message: None,
        started_at: None,
        finished_at: None,
    }
}

fn running() -> Container {
    Container::Running { started_at: None }
}

fn state_of(observed: &ExecutorObservation) -> ExecutorState {
    ExecutorRecord::from(observed).state
}

#[test]
fn pod_phases_map_to_sparks_executor_states() {
    use ExecutorState::*;
    for (phase, container, state) in [
        (Phase::Pending, Container::Absent, Pending),
        (Phase::Running, Container::Absent, Running),
        (Phase::Running, running(), Running),
        // A sidecar keeps the pod running.
        (Phase::Running, exit(0, "Completed"), Succeeded),
        (Phase::Running, exit(1, "Error"), Failed),
        (Phase::Succeeded, Container::Absent, Succeeded),
        (Phase::Failed, exit(137, "OOMKilled"), Failed),
        (Phase::Unknown, running(), Unknown),
    ] {
        assert_eq!(state_of(&observed(phase, container.clone())), state, "{phase:?} {container:?}");
    }
}

#[test]
fn an_executor_whose_pod_is_being_deleted_is_deleted_unless_it_runs() {
    use ExecutorState::*;
    for (phase, container, state) in [
        (Phase::Pending, Container::Absent, Deleted),
        (Phase::Running, running(), Running),
        (Phase::Failed, exit(143, "Error"), Deleted),
        (Phase::Succeeded, exit(0, "Completed"), Deleted),
        (Phase::Unknown, running(), Deleted),
    ] {
        let observed = ExecutorObservation { deleting: true, ..observed(phase, container) };
        assert_eq!(state_of(&observed), state, "{phase:?}");
    }
}

#[test]
fn an_executor_whose_pod_is_gone_is_deleted_unless_it_had_ended() {
    use ExecutorState::*;
    for (phase, container, state) in [
        (Phase::Pending, Container::Absent, Deleted),
        (Phase::Running, running(), Deleted),
        (Phase::Unknown, running(), Deleted),
        (Phase::Failed, exit(1, "Error"), Failed),
        (Phase::Succeeded, exit(0, "Completed"), Succeeded),
    ] {
        let observed = ExecutorObservation { gone: true, ..observed(phase, container) };
        assert_eq!(state_of(&observed), state, "{phase:?}");
    }
}

#[test]
fn an_exit_code_comes_with_kubernetes_reason_and_sparks_words() {
    let oom = ExecutorRecord::from(&observed(Phase::Failed, exit(137, "OOMKilled")));
    assert_eq!((oom.exit_code, oom.reason.as_deref()), (Some(137), Some("OOMKilled")));
    let text = "the executor exited with code 137 (OOMKilled; SIGKILL, possible container OOM)";
    assert_eq!(oom.message.as_deref(), Some(text));
    let other = ExecutorRecord::from(&observed(Phase::Failed, exit(77, "Error")));
    assert_eq!(other.message.as_deref(), Some("the executor exited with code 77 (Error)"));

    let evicted = ExecutorRecord::from(&ExecutorObservation {
        reason: Some("Evicted".to_owned()),
        message: Some("low on memory\n".to_owned()),
        ..observed(Phase::Failed, Container::Absent)
    });
    assert_eq!((evicted.exit_code, evicted.reason.as_deref()), (None, Some("Evicted")));
    let text = "the executor's pod failed (Evicted) and left no exit code: low on memory";
    assert_eq!(evicted.message.as_deref(), Some(text));
}

#[test]
fn a_deleted_executor_keeps_its_exit_code() {
    let deleted = ExecutorObservation { deleting: true, ..observed(Phase::Failed, exit(143, "Error")) };
    let record = ExecutorRecord::from(&deleted);
    assert_eq!((record.state, record.exit_code), (ExecutorState::Deleted, Some(143)));
    let text = "the executor's pod was deleted; the executor exited with code 143 (Error)";
    assert_eq!(record.message.as_deref(), Some(text));
    let running = ExecutorRecord::from(&ExecutorObservation { gone: true, ..observed(Phase::Running, running()) });
    assert_eq!((running.exit_code, running.reason.as_deref()), (None, Some("PodDeleted")));
}

#[test]
fn a_waiting_executor_has_a_reason() {
    let waiting = |reason: &str| {
        let container =
            Container::Waiting { reason: Some(reason.to_owned()), message: Some("no such image".to_owned()) };
        ExecutorRecord::from(&observed(Phase::Pending, container))
    };
    assert_eq!(waiting("ErrImagePull").reason.as_deref(), Some("ErrImagePull"));
    assert_eq!(waiting("ErrImagePull").message.as_deref(), Some("no such image"));
    assert_eq!(waiting("ContainerCreating").reason, None);
}

#[test]
fn a_foreign_text_is_truncated_and_has_no_nul() {
    let message = Some(format!("a\0b{}", "ü".repeat(5000)));
    let record = ExecutorRecord::from(&ExecutorObservation { message, ..observed(Phase::Failed, Container::Absent) });
    let kept = record.message.unwrap();
    assert!(kept.len() <= 4096 + "\u{fffd}".len() && kept.contains("a\u{fffd}b") && !kept.contains('\0'));
}
