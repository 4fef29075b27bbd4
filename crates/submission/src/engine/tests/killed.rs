//! Kills that are accepted while a launch creates its objects.

use super::*;

/// The kill was accepted before the pod existed, or while its objects were created: the next work on the row deletes the pod.
#[test]
fn a_launch_creates_nothing_that_starts_the_driver_once_a_kill_is_accepted() {
    for state in [State::Killing, State::Lost, State::Queued] {
        let before = EffectResult::Recorded(Some(state));
        let asked = run(Launch::begin(ROUND_POD), [EffectResult::Done, created(pending()), before]);
        assert_eq!(asked[3], Effect::Settle(Settled::Done), "{state}");

        let meanwhile = [
            EffectResult::Done,
            created(pending()),
            recorded(),
            EffectResult::Done,
            EffectResult::Done,
            in_state(state),
        ];
        let asked = run(Launch::begin(ROUND_POD), meanwhile);
        assert_eq!(asked[4..], [beside(0), Effect::Read, Effect::Settle(Settled::Done)], "{state}");
    }
}

#[test]
fn the_state_is_read_before_the_last_object_unless_it_was_just_recorded() {
    let alone = Job { before: 0, beside: 1, ..ROUND_POD };
    let asked = run(Launch::begin(alone.clone()), [created(pending()), recorded()]);
    assert_eq!(asked[2], beside(0));

    let again = Job { pod_uid: Some("u".to_owned()), ..alone };
    let found = EffectResult::Found(Found::There(Box::new(pending())));
    let asked = run(Launch::begin(again), [found, in_state(State::Running)]);
    let older = Driver { uid: "u".to_owned(), is_older: true };
    assert_eq!(asked[1..], [Effect::Read, Effect::CreateBeside(0, older)], "the watch may have seen it run");
}
