//! Drivers that their kubelet starts again, or may.

use super::*;

fn first_end() -> Container {
    Container::Terminated {
        exit_code: 1,
        reason: Some("Error".to_owned()),
        message: None,
        started_at: None,
        finished_at: None,
    }
}

/// It has ended once, and runs again.
fn runs_again() -> PodObservation {
    PodObservation { rerun: Some(Rerun::Live), ..observed(Phase::Running, first_end()) }
}

/// It has ended, and its kubelet will start it again.
fn will_run_again() -> PodObservation {
    PodObservation {
        restarted_by: Some("spec.restartPolicy: OnFailure".to_owned()),
        ..observed(Phase::Running, first_end())
    }
}

fn found(pod: PodObservation) -> EffectResult {
    EffectResult::Found(Found::There(Box::new(pod)))
}

#[test]
fn a_driver_that_may_run_again_is_deleted_and_its_end_counts_after_that() {
    for again in [runs_again(), will_run_again()] {
        let follow = || Follow::observed(Box::new(again.clone()));
        let asked = run(follow(), [in_state(State::Running), found(again.clone()), EffectResult::Done]);
        assert_eq!(asked[1..], [Effect::LookUp, Effect::Delete("u".into()), Effect::Settle(Settled::Done)]);

        let deleting = PodObservation { deleting: true, ..again.clone() };
        if deleting.may_run_again() {
            let asked = run(Follow::observed(Box::new(deleting)), [in_state(State::Running)]);
            assert_eq!(asked[1], Effect::Settle(Settled::Done), "it runs until its grace period is over");
        }
        let over = PodObservation { deleting: true, rerun: again.rerun.map(|_| Rerun::Over), ..again.clone() };
        let asked =
            run(Follow::observed(Box::new(over.clone())), [in_state(State::Running), EffectResult::Moved(true)]);
        assert_eq!(ends(&asked[1]), Some(State::Failed), "the first end, and not that of the deletion");
        assert_eq!(asked[2], Effect::RemoveFinalizer("u".into()));

        // The observation was older than the end.
        let asked = run(follow(), [in_state(State::Running), found(over), in_state(State::Running)]);
        assert_eq!(ends(&asked[3]), Some(State::Failed));
    }
}

#[test]
fn a_kill_deletes_a_driver_that_runs_again() {
    for again in [runs_again(), will_run_again()] {
        let asked = run(Kill::begin(Job::default()), [found(again.clone()), EffectResult::Done, found(again)]);
        assert_eq!(asked[1..], [Effect::Delete("u".into()), Effect::LookUp, Effect::Settle(Settled::LookAgain)]);
    }
}

#[test]
fn a_driver_without_a_submission_that_runs_again_is_deleted() {
    let ended = EffectResult::Row(Some(row(State::Failed, Some("u"))));
    let asked = run(Follow::observed(Box::new(runs_again())), [ended, found(runs_again()), EffectResult::Done]);
    assert_eq!(asked[1..], [Effect::LookUp, Effect::Delete("u".into()), Effect::RemoveFinalizer("u".into())]);
}

#[test]
fn a_driver_that_left_the_watch_after_its_first_end_is_looked_up() {
    let left = PodObservation { gone: true, ..will_run_again() };
    let unlabelled = PodObservation { labelled: false, ..runs_again() };
    let answers = [in_state(State::Running), found(unlabelled.clone()), in_state(State::Running), found(unlabelled)];
    let asked = run(Follow::observed(Box::new(left)), answers);
    assert_eq!(asked[1..], [Effect::LookUp, Effect::Read, Effect::LookUp, Effect::Delete("u".into())]);
}
