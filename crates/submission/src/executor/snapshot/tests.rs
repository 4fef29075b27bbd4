use super::*;
use crate::{Container, ExecutorState, Phase};

fn look(id: i64, phase: Phase) -> ExecutorObservation {
    ExecutorObservation {
        submission: "driver-20260101000000-0001".parse().unwrap(),
        attempt: 1,
        executor_id: id,
        driver_uid: "driver".to_owned(),
        pod_name: format!("pi-exec-{id}"),
        pod_uid: format!("u{id}"),
        phase,
        deleting: false,
        gone: false,
        node: None,
        reason: None,
        message: None,
        container: Container::Absent,
        created_at: None,
        reservation: Default::default(),
    }
}

fn state(changed: Option<ExecutorRecord>) -> Option<ExecutorState> {
    changed.map(|record| record.state)
}

#[test]
fn executor_snapshots_return_only_changes() {
    let mut known = ExecutorSnapshots::default();
    assert_eq!(state(known.take(&look(1, Phase::Pending))), Some(ExecutorState::Pending));
    assert_eq!(known.take(&look(1, Phase::Pending)), None, "again");
    let placed = ExecutorObservation { node: Some("n".to_owned()), ..look(1, Phase::Pending) };
    assert_eq!(state(known.take(&placed)), Some(ExecutorState::Pending), "it got a node");
    let running = known.take(&look(1, Phase::Running)).unwrap();
    assert_eq!((running.state, running.node.as_deref()), (ExecutorState::Running, Some("n")));
    assert_eq!(known.take(&look(1, Phase::Pending)), None, "late");
    assert_eq!(known.take(&look(1, Phase::Unknown)), None, "its node doesn't answer");
    assert_eq!(state(known.take(&look(1, Phase::Failed))), Some(ExecutorState::Failed));
    let deleting = ExecutorObservation { deleting: true, ..look(1, Phase::Failed) };
    assert_eq!(known.take(&deleting), None, "an end is final");
    assert_eq!(known.take(&ExecutorObservation { gone: true, ..deleting }), None);
}

#[test]
fn an_executor_missing_from_a_full_list_is_new_when_observed_again() {
    let mut known = ExecutorSnapshots::default();
    for id in 1..=2 {
        known.take(&look(id, Phase::Running));
    }
    known.listed(&HashSet::from([look(2, Phase::Running).key()]));
    assert_eq!(state(known.take(&look(1, Phase::Running))), Some(ExecutorState::Running));
    assert_eq!(known.take(&look(2, Phase::Running)), None);
}

#[test]
fn deleted_pods_are_removed_from_executor_snapshots() {
    let mut known = ExecutorSnapshots::default();
    for id in 1..=100 {
        known.take(&look(id, Phase::Running));
        known.take(&ExecutorObservation { gone: true, ..look(id, Phase::Running) });
        known.take(&look(1000 + id, Phase::Succeeded));
    }
    known.listed(&HashSet::new());
    assert!(known.known.is_empty());
}
