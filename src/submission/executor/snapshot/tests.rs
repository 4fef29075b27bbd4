use super::*;
use crate::submission::{Container, ExecutorState, Phase};

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
    }
}

fn state(changed: Option<ExecutorRecord>) -> Option<ExecutorState> {
    changed.map(|record| record.state)
}

#[test]
fn only_what_is_new_is_answered() {
    let mut known = ExecutorSnapshots::default();
    assert_eq!(state(known.take(&look(1, Phase::Pending))), Some(ExecutorState::Pending));
    assert_eq!(known.take(&look(1, Phase::Pending)), None, "again");
    let placed = ExecutorObservation { node: Some("n".to_owned()), ..look(1, Phase::Pending) };
    assert_eq!(state(known.take(&placed)), Some(ExecutorState::Pending), "it got a node");
    let running = known.take(&look(1, Phase::Running)).unwrap();
    assert_eq!((running.state, running.node.as_deref()), (ExecutorState::Running, Some("n")));
    assert_eq!(known.take(&look(1, Phase::Pending)), None, "late");
    assert_eq!(known.take(&look(1, Phase::Unknown)), None, "its node is silent");
    assert_eq!(state(known.take(&look(1, Phase::Failed))), Some(ExecutorState::Failed));
    let deleting = ExecutorObservation { deleting: true, ..look(1, Phase::Failed) };
    assert_eq!(known.take(&deleting), None, "an end absorbs");
    assert_eq!(known.take(&ExecutorObservation { gone: true, ..deleting }), None);
}

#[test]
fn what_is_not_in_a_full_list_is_news_when_it_is_shown() {
    let mut known = ExecutorSnapshots::default();
    for id in 1..=2 {
        known.take(&look(id, Phase::Running));
    }
    known.listed(&HashSet::from([look(2, Phase::Running).key()]));
    assert_eq!(state(known.take(&look(1, Phase::Running))), Some(ExecutorState::Running));
    assert_eq!(known.take(&look(2, Phase::Running)), None);
}

#[test]
fn nothing_stays_of_pods_that_are_gone() {
    let mut known = ExecutorSnapshots::default();
    for id in 1..=100 {
        known.take(&look(id, Phase::Running));
        known.take(&ExecutorObservation { gone: true, ..look(id, Phase::Running) });
        known.take(&look(1000 + id, Phase::Succeeded));
    }
    known.listed(&HashSet::new());
    assert!(known.known.is_empty());
}
