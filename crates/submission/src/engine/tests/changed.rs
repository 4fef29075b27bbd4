//! Pods that differ from those that were sent: a mutating webhook changed them at their creation.

use super::*;

fn restartable() -> PodObservation {
    PodObservation { restarted_by: Some("spec.containers[0].restartPolicy: OnFailure".to_owned()), ..pending() }
}

#[test]
fn a_pod_whose_driver_could_run_twice_is_deleted_before_anything_that_it_owns_is_created() {
    let found = || EffectResult::Found(Found::There(Box::new(restartable())));
    let known = Job { pod_uid: Some("u".to_owned()), ..ROUND_POD };
    let ways = [
        (ROUND_POD, vec![EffectResult::Done, created(restartable()), recorded()]),
        (ROUND_POD, vec![EffectResult::Done, EffectResult::Taken("taken".into()), found(), recorded()]),
        (known, vec![found()]),
    ];
    for (job, answers) in ways {
        let at = answers.len();
        let ended = [EffectResult::Done, EffectResult::Moved(true), EffectResult::Done, EffectResult::Done];
        let asked = run(Launch::begin(job), answers.into_iter().chain(ended));
        let Effect::Advance(StateChange::Ended(outcome), _) = &asked[at + 1] else { panic!("{asked:?}") };
        assert_eq!((outcome.state, outcome.reason.as_deref()), (State::Error, Some("PodChanged")));
        assert!(outcome.message.contains("spec.containers[0].restartPolicy: OnFailure"), "{}", outcome.message);
        let (delete, release) = (Effect::Delete("u".into()), Effect::RemoveFinalizer("u".into()));
        assert_eq!(asked[at + 2..], [delete, release, Effect::Settle(Settled::Done)]);
        assert!(!asked.iter().any(|effect| matches!(effect, Effect::CreateBeside(..))), "{asked:?}");
    }
}

#[test]
fn missing_marks_are_restored_before_the_driver_can_start() {
    let lacking = [
        PodObservation { labelled: false, ..pending() },
        PodObservation { genuine: false, ..pending() },
        PodObservation { holds_finalizer: false, ..pending() },
    ];
    for pod in lacking {
        for answer in [EffectResult::Done, refusal()] {
            let asked = run(Launch::begin(ROUND_POD), [EffectResult::Done, created(pod.clone()), recorded(), answer]);
            assert_eq!(asked[3], Effect::RestoreLabels("u".into()), "{pod:?}");
            assert_eq!(asked[4], Effect::HandOver(0, "u".into()), "the next list finds it otherwise");
        }
    }
    let unheld = Job { held: false, ..ROUND_POD };
    let pod = PodObservation { holds_finalizer: false, ..pending() };
    let asked = run(Launch::begin(unheld), [EffectResult::Done, created(pod), recorded()]);
    assert_eq!(asked[3], Effect::HandOver(0, "u".into()), "it never had one");
}
