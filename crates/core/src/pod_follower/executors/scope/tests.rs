use super::*;
use sparkgate_submission::{Container, ExecutorState, Phase};

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

fn row(id: i64) -> LiveExecutor {
    let ExecutorObservation { pod_name, pod_uid, .. } = look(id, Phase::Running);
    LiveExecutor { key: look(id, Phase::Running).key(), namespace: "spark".to_owned(), pod_name, pod_uid }
}

fn states(scope: &Scope) -> Vec<(i64, ExecutorState)> {
    scope.batch(None, 100).into_iter().map(|record| (record.executor_id, record.state)).collect()
}

#[test]
fn a_batch_remains_until_it_is_written() {
    let mut scope = Scope::default();
    for id in 1..=5 {
        scope.note(&look(id, Phase::Pending));
    }
    let first = scope.batch(None, 2);
    assert_eq!(first, scope.batch(None, 2), "the first flush may have been interrupted");
    let behind = scope.batch(Some(&change_of(&first[1])), 10);
    assert_eq!(behind.iter().map(|record| record.executor_id).collect::<Vec<_>>(), [3, 4, 5]);
    scope.note(&look(2, Phase::Running));
    scope.written(&first);
    assert_eq!(states(&scope)[0], (2, ExecutorState::Running), "it changed while it was being written");
    assert_eq!(scope.changes(), 4);
}

#[test]
fn an_end_that_waits_to_be_written_is_not_overwritten() {
    let mut scope = Scope::default();
    scope.note(&look(1, Phase::Failed));
    let gone = ExecutorObservation { gone: true, deleting: true, ..look(1, Phase::Failed) };
    scope.note(&gone);
    scope.note(&gone);
    assert_eq!(states(&scope), [(1, ExecutorState::Failed)]);
}

#[test]
fn executors_missing_from_a_list_are_looked_up() {
    let mut scope = Scope::default();
    scope.listed(HashSet::from([row(1).key]));
    let list = scope.to_be_compared().unwrap();
    scope.compare(list, [1, 2, 3, 4].map(row).into());
    assert_eq!(scope.to_be_compared(), None, "once for each list");
    assert_eq!(scope.missing(2), [row(2), row(3)]);
    assert_eq!(states(&scope), [], "they may be younger than the list");
    scope.looked_for(&row(2), true);
    scope.looked_for(&row(3), false);
    assert_eq!(states(&scope), [(3, ExecutorState::Deleted)]);
    scope.listed(HashSet::from([row(4).key]));
    assert_eq!(scope.missing(2), [], "it was listed since");
    scope.looked_for(&row(4), false);
    assert_eq!(states(&scope), [(3, ExecutorState::Deleted)], "the look is older than that list");
}

#[test]
fn executor_rows_read_before_the_last_list_are_not_compared_with_it() {
    let mut scope = Scope::default();
    scope.listed(HashSet::new());
    let list = scope.to_be_compared().unwrap();
    scope.listed(HashSet::new());
    scope.compare(list, vec![row(1)]);
    assert_eq!(scope.missing(1), []);
    assert!(scope.to_be_compared().is_some());
}
