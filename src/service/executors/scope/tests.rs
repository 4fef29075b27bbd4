use super::*;
use crate::submission::{Container, Phase};

fn look(id: i64, phase: Phase) -> ExecutorObservation {
    ExecutorObservation {
        submission: "driver-20260101000000-0001".parse().unwrap(),
        attempt: 1,
        executor_id: id,
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

fn row(id: i64) -> LiveExecutor {
    let seen = look(id, Phase::Running);
    LiveExecutor { key: seen.key(), pod_name: seen.pod_name, pod_uid: seen.pod_uid }
}

fn states(scope: &Scope) -> Vec<(i64, ExecutorState)> {
    scope.batch(None, 100).into_iter().map(|record| (record.executor_id, record.state)).collect()
}

#[test]
fn a_batch_stays_until_it_is_written() {
    let mut scope = Scope::default();
    for id in 1..=5 {
        scope.note(&look(id, Phase::Pending));
    }
    let first = scope.batch(None, 2);
    assert_eq!(first, scope.batch(None, 2), "whoever asked first was interrupted");
    let behind = scope.batch(Some(&first[1].key()), 10);
    assert_eq!(behind.iter().map(|record| record.executor_id).collect::<Vec<_>>(), [3, 4, 5]);
    scope.note(&look(2, Phase::Running));
    scope.written(&first);
    assert_eq!(states(&scope)[0], (2, ExecutorState::Running), "it changed while it was being written");
    assert_eq!(scope.changes(), 4);
}

#[test]
fn an_end_that_waits_to_be_written_stays_that_end() {
    let mut scope = Scope::default();
    scope.note(&look(1, Phase::Failed));
    let gone = ExecutorObservation { gone: true, deleting: true, ..look(1, Phase::Failed) };
    scope.note(&gone);
    scope.note(&gone);
    assert_eq!(states(&scope), [(1, ExecutorState::Failed)]);
}

#[test]
fn a_row_without_a_pod_is_given_up_unless_the_watch_shows_it_in_time() {
    let mut scope = Scope::default();
    let now = Instant::now();
    scope.listed(HashSet::from([row(1).key]));
    scope.compared(scope.lists(), [1, 2, 3].map(row).into(), now);
    scope.give_up_missing(now);
    assert_eq!(states(&scope), [], "not at once");
    // Another process wrote its row after the list.
    scope.note(&look(2, Phase::Running));
    scope.give_up_missing(now + GRACE);
    assert_eq!(states(&scope), [(2, ExecutorState::Running), (3, ExecutorState::Deleted)]);
    assert!(!scope.is_to_be_compared(), "once for each list");
}

#[test]
fn rows_that_were_read_before_the_last_list_are_not_compared_with_it() {
    let mut scope = Scope::default();
    let now = Instant::now();
    scope.listed(HashSet::new());
    let begun = scope.lists();
    scope.listed(HashSet::new());
    scope.compared(begun, vec![row(1)], now);
    assert!(scope.is_to_be_compared());
    scope.give_up_missing(now + GRACE);
    assert_eq!(states(&scope), []);
}
