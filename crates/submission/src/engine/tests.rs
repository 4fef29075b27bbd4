use super::*;
use crate::{Container, Phase, Placement, PodObservation, Rerun, StateChange};

fn observed(phase: Phase, container: Container) -> PodObservation {
    PodObservation {
        submission: "driver-20260101000000-0001".parse().unwrap(),
        attempt: 1,
        namespace: "spark".to_owned(),
        pod: "pi-driver".to_owned(),
        pod_uid: "u".to_owned(),
        genuine: true,
        labelled: true,
        phase,
        deleting: false,
        forced: false,
        asked_to_go_at: None,
        holds_finalizer: true,
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

fn running() -> PodObservation {
    observed(Phase::Running, Container::Running { started_at: None })
}

fn row(state: State, uid: Option<&str>) -> Row {
    Row {
        state,
        attempt: 1,
        namespace: "spark".to_owned(),
        pod: Some("pi-driver".to_owned()),
        pod_uid: uid.map(str::to_owned),
        kill: KillCause::Request,
    }
}

/// Passes the answers in order and returns the requested effects.
fn run(mut machine: impl Machine, answers: impl IntoIterator<Item = EffectResult>) -> Vec<Effect> {
    let mut asked = vec![machine.effect().clone()];
    for answer in answers {
        assert!(!matches!(asked.last(), Some(Effect::Settle(_))), "settled too soon: {asked:?}");
        machine.take_result(answer);
        asked.push(machine.effect().clone());
    }
    asked
}

fn refusal() -> EffectResult {
    EffectResult::Refused { reason: "Forbidden".to_owned(), message: "no".to_owned() }
}

fn ends(effect: &Effect) -> Option<State> {
    match effect {
        Effect::Advance(progress @ StateChange::Ended(_), _) => Some(progress.state()),
        _ => None,
    }
}

const ROUND_POD: Job = Job { pod_uid: None, signed: true, held: true, before: 1, beside: 2, kill: KillCause::Request };

/// The pod of a launch as the API server returns it.
fn pending() -> PodObservation {
    observed(Phase::Pending, Container::Absent)
}

fn created(pod: PodObservation) -> EffectResult {
    EffectResult::Created(Box::new(pod))
}

fn recorded() -> EffectResult {
    EffectResult::Recorded(Some(State::Launching))
}

fn in_state(state: State) -> EffectResult {
    EffectResult::Row(Some(row(state, Some("u"))))
}

fn beside(place: usize) -> Effect {
    Effect::CreateBeside(place, Driver { uid: "u".to_owned(), is_older: false })
}

#[test]
fn the_uid_is_recorded_before_any_object_that_the_pod_owns_is_created() {
    let u = || "u".to_owned();
    let answers = [
        EffectResult::Done,
        created(pending()),
        recorded(),
        EffectResult::Done,
        EffectResult::Done,
        in_state(State::Launching),
        EffectResult::Done,
    ];
    let asked = run(Launch::begin(ROUND_POD), answers.into_iter().chain([EffectResult::Moved(true)]));
    let launched = Placement { pod_uid: Some(u()), ..Placement::default() };
    assert_eq!(
        asked,
        [
            Effect::CreateBefore(0),
            Effect::CreatePod,
            Effect::RecordPod(u()),
            Effect::HandOver(0, u()),
            beside(0),
            Effect::Read,
            beside(1),
            Effect::Advance(StateChange::Launched, launched),
            Effect::Settle(Settled::GivenBack),
        ]
    );
}

#[test]
fn a_recorded_pod_is_never_created_again() {
    let job = Job { pod_uid: Some("u".to_owned()), ..ROUND_POD };
    for found in [Found::Nothing, Found::There(Box::new(PodObservation { pod_uid: "v".into(), ..running() }))] {
        let asked = run(
            Launch::begin(job.clone()),
            [EffectResult::Found(found), EffectResult::Done, EffectResult::Moved(true)],
        );
        assert_eq!(asked[1], Effect::DeleteBefore(0), "the pod may not own it yet");
        assert_eq!(ends(&asked[2]), Some(State::Lost), "{asked:?}");
        assert_eq!(asked[3], Effect::Settle(Settled::Done));
    }
}

#[test]
fn a_refused_object_deletes_the_pod_only_while_the_claim_is_held() {
    let refused =
        || [EffectResult::Done, created(pending()), recorded(), EffectResult::Done, refusal(), EffectResult::Done];
    let asked = run(
        Launch::begin(ROUND_POD),
        refused().into_iter().chain([EffectResult::Moved(true), EffectResult::Done, EffectResult::Done]),
    );
    assert_eq!(asked[5], Effect::DeleteBefore(0), "whether the pod owns it or not");
    assert_eq!(ends(&asked[6]), Some(State::Error));
    assert_eq!(asked[7..9], [Effect::Delete("u".into()), Effect::RemoveFinalizer("u".into())]);

    let asked = run(Launch::begin(ROUND_POD), refused().into_iter().chain([EffectResult::Moved(false)]));
    assert_eq!(asked[7], Effect::Settle(Settled::Done), "another worker may have launched it");
}

#[test]
fn an_object_that_was_deleted_with_its_pod_is_no_refusal() {
    let gone = EffectResult::Refused { reason: "NotFound".to_owned(), message: "no such PodGroup".to_owned() };
    let answers = [EffectResult::Done, created(pending()), recorded(), gone];
    assert_eq!(run(Launch::begin(ROUND_POD), answers)[4], beside(0));
}

#[test]
fn a_kill_deletes_the_objects_that_were_created_before_the_pod() {
    let job = Job { pod_uid: Some("u".to_owned()), ..ROUND_POD };
    let found = || EffectResult::Found(Found::There(Box::new(pending())));
    let asked = run(Kill::begin(job.clone()), [found(), EffectResult::Done, found()]);
    assert_eq!(asked[1..], [Effect::HandOver(0, "u".into()), Effect::LookUp, Effect::Delete("u".into())]);

    let asked = run(Kill::begin(job), [EffectResult::Found(Found::Nothing), EffectResult::Done]);
    assert_eq!(asked[1], Effect::DeleteBefore(0), "a pod that was recorded may have gone before it owned this");
    assert_eq!(ends(&asked[2]), Some(State::Killed));
}

#[test]
fn a_refused_pod_deletes_the_objects_that_were_created_for_it() {
    let answers = [EffectResult::Done, refusal(), EffectResult::Found(Found::Nothing), EffectResult::Done];
    let asked = run(Launch::begin(ROUND_POD), answers);
    assert_eq!(asked[2..4], [Effect::LookUp, Effect::DeleteBefore(0)]);
    assert_eq!(ends(&asked[4]), Some(State::Error));
}

#[test]
fn a_kill_removes_the_finalizer_of_a_pod_that_never_had_a_node() {
    let held = PodObservation { deleting: true, forced: true, ..observed(Phase::Pending, Container::Absent) };
    let asked = run(
        Kill::begin(Job::default()),
        [
            EffectResult::Found(Found::There(Box::new(pending()))),
            EffectResult::Done,
            EffectResult::Found(Found::There(Box::new(held))),
            EffectResult::Moved(true),
            EffectResult::Done,
        ],
    );
    assert_eq!(asked[1], Effect::Delete("u".into()));
    assert_eq!(ends(&asked[3]), Some(State::Killed));
    assert_eq!(asked[4..], [Effect::RemoveFinalizer("u".into()), Effect::Settle(Settled::Done)]);
}

#[test]
fn an_outcome_is_committed_before_the_finalizer_is_removed() {
    let ended = observed(Phase::Succeeded, exit(0));
    let in_state = |state| EffectResult::Row(Some(row(state, Some("u"))));
    let answers = [in_state(State::Running), EffectResult::Moved(true), EffectResult::Done];
    let asked = run(Follow::observed(Box::new(ended.clone())), answers);
    assert_eq!(ends(&asked[1]), Some(State::Finished));
    assert_eq!(asked[2], Effect::RemoveFinalizer("u".into()));
    let answers = [in_state(State::Running), EffectResult::Moved(false), in_state(State::Finished), EffectResult::Done];
    let asked = run(Follow::observed(Box::new(ended.clone())), answers);
    assert_eq!(asked[2..4], [Effect::Read, Effect::RemoveFinalizer("u".into())], "it was committed earlier");
    // A kill came between the statements that may record the end.
    let killed = [in_state(State::Running), EffectResult::Moved(false), in_state(State::Killing)];
    let asked =
        run(Follow::observed(Box::new(ended.clone())), killed.clone().into_iter().chain([EffectResult::Moved(true)]));
    assert_eq!((ends(&asked[3]), &asked[4]), (Some(State::Finished), &Effect::RemoveFinalizer("u".into())));
    let asked = run(Follow::observed(Box::new(ended.clone())), killed.into_iter().chain([EffectResult::Moved(false)]));
    assert!(matches!(asked[4], Effect::Settle(Settled::TryAgain(_))), "the finalizer stays: {asked:?}");
    let asked = run(
        Follow::observed(Box::new(ended)),
        [EffectResult::Row(Some(row(State::Running, Some("u")))), EffectResult::Unknown("away".into())],
    );
    assert_eq!(asked[2], Effect::Settle(Settled::TryAgain("away".into())));
}

#[test]
fn the_end_of_another_pod_than_the_one_of_the_row_ends_no_submission() {
    let ended = observed(Phase::Failed, exit(1));
    let follow = |row: Row| run(Follow::observed(Box::new(ended.clone())), [EffectResult::Row(Some(row))]).remove(1);
    assert_eq!(ends(&follow(row(State::Running, None))), Some(State::Failed));
    for other in [
        Row { namespace: "other".to_owned(), ..row(State::Running, None) },
        Row { pod: Some("other-driver".to_owned()), ..row(State::Running, None) },
    ] {
        assert_eq!(follow(other), Effect::RemoveFinalizer("u".into()));
    }
}

#[test]
fn a_driver_without_a_submission_is_deleted_after_a_second_look_up() {
    let rows = [
        None,
        Some(row(State::Lost, Some("u"))),
        Some(row(State::Running, Some("v"))),
        Some(Row { attempt: 2, ..row(State::Running, None) }),
        // Another pod of ours than the one that the row names: a database of the same installation created it.
        Some(Row { namespace: "other".to_owned(), ..row(State::Running, None) }),
        Some(Row { pod: Some("other-driver".to_owned()), ..row(State::Running, None) }),
    ];
    for row in rows {
        let fresh = EffectResult::Found(Found::There(Box::new(running())));
        let asked =
            run(Follow::observed(Box::new(running())), [EffectResult::Row(row.clone()), fresh, EffectResult::Done]);
        assert_eq!(
            asked[1..],
            [Effect::LookUp, Effect::Delete("u".into()), Effect::RemoveFinalizer("u".into())],
            "{row:?}"
        );

        let ended = EffectResult::Found(Found::There(Box::new(observed(Phase::Failed, exit(1)))));
        let asked = run(Follow::observed(Box::new(running())), [EffectResult::Row(row), ended]);
        assert_eq!(asked[2], Effect::RemoveFinalizer("u".into()), "a finished pod stays, with its log");
    }
}

fn exit(exit_code: i32) -> Container {
    Container::Terminated { exit_code, reason: None, message: None, started_at: None, finished_at: None }
}

#[test]
fn a_pod_that_is_missing_from_a_list_is_looked_up_before_its_submission_is_lost() {
    let missed = || Follow::missed(row(State::Running, Some("u")));
    let nothing = |now| run(missed(), [EffectResult::Found(Found::Nothing), EffectResult::Row(now)]);
    let asked = nothing(Some(row(State::Running, Some("u"))));
    assert_eq!((&asked[1], ends(&asked[2])), (&Effect::Read, Some(State::Lost)));
    let asked = nothing(Some(row(State::Killing, Some("u"))));
    assert_eq!(ends(&asked[2]), Some(State::Killed), "a kill came between the list and the look");
    for now in [None, Some(row(State::Finished, Some("u"))), Some(row(State::Running, Some("v")))] {
        assert_eq!(nothing(now)[2], Effect::Settle(Settled::Done));
    }
    let asked = run(missed(), [EffectResult::Found(Found::There(Box::new(running())))]);
    assert_eq!(asked[1], Effect::Read);
}

/// A pod of another client: it has our labels, but no signed identity.
fn forged() -> PodObservation {
    PodObservation { genuine: false, ..running() }
}

#[test]
fn a_forged_pod_changes_no_row_and_is_left_alone() {
    let ended = PodObservation { genuine: false, ..observed(Phase::Succeeded, exit(0)) };
    for row in [row(State::Queued, None), row(State::Launching, None), row(State::Running, Some("v"))] {
        for forged in [forged(), PodObservation { holds_finalizer: false, ..ended.clone() }] {
            let asked = run(Follow::observed(Box::new(forged)), [EffectResult::Row(Some(row.clone()))]);
            assert_eq!(asked[1], Effect::Settle(Settled::Done), "{row:?}");
        }
    }
    let asked = run(Follow::observed(Box::new(ended)), [EffectResult::Row(Some(row(State::Running, Some("u"))))]);
    assert_eq!(ends(&asked[1]), Some(State::Finished), "a recorded uid decides");
}

#[test]
fn a_pod_that_another_client_created_is_neither_adopted_nor_deleted() {
    let taken = || {
        [EffectResult::Done, EffectResult::Taken("taken".into()), EffectResult::Found(Found::There(Box::new(forged())))]
    };
    let asked = run(Launch::begin(ROUND_POD), taken().into_iter().chain([EffectResult::Done]));
    assert_eq!(asked[3], Effect::DeleteBefore(0));
    assert_eq!(ends(&asked[4]), Some(State::Error));
    let asked =
        run(Kill::begin(Job { before: 0, ..ROUND_POD }), [EffectResult::Found(Found::There(Box::new(forged())))]);
    assert_eq!(ends(&asked[1]), Some(State::Killed), "there is no pod of its own");

    let unsigned = Job { signed: false, ..ROUND_POD };
    let asked = run(Launch::begin(unsigned), taken());
    assert_eq!(asked[3], Effect::RecordPod("u".into()), "the previous release built it");
}

#[test]
fn a_driver_that_left_the_watch_is_looked_up_before_its_submission_ends() {
    let left = || PodObservation { gone: true, ..running() };
    let live = || EffectResult::Row(Some(row(State::Running, Some("u"))));
    let unlabelled = PodObservation { labelled: false, ..running() };
    let asked = run(
        Follow::observed(Box::new(left())),
        [live(), EffectResult::Found(Found::There(Box::new(unlabelled.clone()))), live(), EffectResult::Done],
    );
    let restored = [Effect::LookUp, Effect::Read, Effect::RestoreLabels("u".into()), Effect::Settle(Settled::Done)];
    assert_eq!(asked[1..], restored);

    let over = PodObservation { labelled: false, ..observed(Phase::Failed, exit(3)) };
    let found = EffectResult::Found(Found::There(Box::new(over)));
    let asked = run(Follow::observed(Box::new(left())), [live(), found, live()]);
    assert_eq!(ends(&asked[3]), Some(State::Failed), "it ended in the meantime");

    // The kill was accepted between the read and the look-up.
    let killed = PodObservation { labelled: false, deleting: true, ..observed(Phase::Failed, exit(143)) };
    let overdue = KillCause::RunTimeout("killed after 1 s".to_owned());
    let killing = EffectResult::Row(Some(Row { kill: overdue, ..row(State::Killing, Some("u")) }));
    let answers = [live(), EffectResult::Found(Found::There(Box::new(killed))), killing];
    let asked = run(Follow::observed(Box::new(left())), answers);
    let Effect::Advance(StateChange::Ended(outcome), _) = &asked[3] else { panic!("{asked:?}") };
    assert!(outcome.message.starts_with("killed after 1 s"), "{outcome:?}");

    for found in [Found::Nothing, Found::There(Box::new(PodObservation { pod_uid: "v".into(), ..running() }))] {
        let asked = run(
            Follow::observed(Box::new(left())),
            [live(), EffectResult::Found(found), live(), EffectResult::Moved(true)],
        );
        assert_eq!((&asked[1], &asked[2], ends(&asked[3])), (&Effect::LookUp, &Effect::Read, Some(State::Lost)));
    }
    let being_deleted = PodObservation { deleting: true, ..left() };
    let asked = run(
        Follow::observed(Box::new(being_deleted)),
        [live(), EffectResult::Found(Found::There(Box::new(unlabelled))), live()],
    );
    assert_eq!(asked[3], Effect::RestoreLabels("u".into()), "it still runs during its grace period");

    let explained = PodObservation { gone: true, ..observed(Phase::Failed, exit(3)) };
    let asked = run(Follow::observed(Box::new(explained)), [live()]);
    assert_eq!(ends(&asked[1]), Some(State::Failed), "its last state is known");
}

#[test]
fn the_finalizer_of_a_driver_that_left_the_watch_after_its_end_is_removed() {
    let left = || PodObservation { gone: true, ..observed(Phase::Failed, Container::Absent) };
    let unlabelled = || Box::new(PodObservation { labelled: false, ..observed(Phase::Failed, Container::Absent) });
    let ended = || EffectResult::Row(Some(row(State::Failed, Some("u"))));
    let there = || EffectResult::Found(Found::There(unlabelled()));
    let asked = run(Follow::observed(Box::new(left())), [ended(), there(), ended(), EffectResult::Done]);
    let removed = [Effect::LookUp, Effect::Read, Effect::RemoveFinalizer("u".into()), Effect::Settle(Settled::Done)];
    assert_eq!(asked[1..], removed);

    let live = EffectResult::Row(Some(row(State::Running, Some("u"))));
    let answers = [live, EffectResult::Moved(true), there(), ended(), EffectResult::Done];
    let asked = run(Follow::observed(Box::new(left())), answers);
    assert_eq!(ends(&asked[1]), Some(State::Failed));
    assert_eq!(asked[4..], [Effect::RemoveFinalizer("u".into()), Effect::Settle(Settled::Done)]);

    let asked = run(Follow::observed(Box::new(left())), [ended(), EffectResult::Found(Found::Nothing), ended()]);
    assert_eq!(asked[1..], [Effect::LookUp, Effect::Read, Effect::Settle(Settled::Done)]);
}

#[test]
fn labels_of_a_pod_that_lost_them_are_restored() {
    let started = PodObservation { labelled: false, ..running() };
    let pending = EffectResult::Row(Some(row(State::Pending, Some("u"))));
    let asked = run(Follow::observed(Box::new(started)), [pending, EffectResult::Moved(true), EffectResult::Done]);
    assert!(matches!(asked[1], Effect::Advance(StateChange::Running, _)), "{asked:?}");
    assert_eq!(asked[2..], [Effect::RestoreLabels("u".into()), Effect::Settle(Settled::Done)]);
}

#[test]
fn a_denial_that_may_pass_ends_no_submission() {
    let denied = || EffectResult::Denied("no right".into());
    let settled = Effect::Settle(Settled::Denied("no right".into()));
    assert_eq!(run(Launch::begin(ROUND_POD), [denied()])[1], settled);
    for looked_up in [EffectResult::Found(Found::Nothing), EffectResult::Denied("no right to look".into())] {
        let asked = run(Launch::begin(ROUND_POD), [EffectResult::Done, denied(), looked_up]);
        assert_eq!(asked[2..], [Effect::LookUp, settled.clone()]);
    }
    assert_eq!(run(Kill::begin(ROUND_POD), [denied()])[1], settled);
    let asked = run(Follow::missed(row(State::Running, Some("u"))), [denied()]);
    assert_eq!(asked[1], Effect::Settle(Settled::TryAgain("no right".into())));
}

#[test]
fn what_may_pass_ends_no_submission_at_any_step_of_its_launch() {
    for obstacle in [Obstacle::Quota, Obstacle::Webhook, Obstacle::Namespace] {
        let postponed = || EffectResult::Postponed(obstacle, "no room".into());
        let settled = Effect::Settle(Settled::Postponed(obstacle, "no room".into()));
        assert_eq!(run(Launch::begin(ROUND_POD), [postponed()])[1], settled);
        let created = [EffectResult::Done, created(pending()), recorded(), EffectResult::Done];
        let asked = run(Launch::begin(ROUND_POD), created.into_iter().chain([postponed()]));
        assert!(matches!(asked[4], Effect::CreateBeside(..)), "{asked:?}");
        assert_eq!(asked[5], settled, "the recorded pod waits for what it owns");
        assert_eq!(run(Kill::begin(ROUND_POD), [postponed()])[1], settled);
        let asked = run(Follow::missed(row(State::Running, Some("u"))), [postponed()]);
        assert_eq!(asked[1], Effect::Settle(Settled::TryAgain("no room".into())));
    }
}

/// The API server asks quotas, webhooks and policies before it says that a pod exists, and the pod may itself take the room that the
/// quota lacks.
#[test]
fn a_pod_whose_creation_is_refused_because_it_exists_is_found() {
    let refused =
        EffectResult::Refused { reason: "Forbidden".into(), message: "the namespace is being terminated".into() };
    let quota = || EffectResult::Postponed(Obstacle::Quota, "no room".into());
    for refusal in [EffectResult::Denied("no".into()), quota(), refused.clone()] {
        let found = EffectResult::Found(Found::There(Box::new(pending())));
        let asked = run(Launch::begin(ROUND_POD), [EffectResult::Done, refusal, found]);
        assert_eq!(asked[2..], [Effect::LookUp, Effect::RecordPod("u".to_owned())]);
    }
    let nothing = || EffectResult::Found(Found::Nothing);
    let asked = run(Launch::begin(ROUND_POD), [EffectResult::Done, refused, nothing(), EffectResult::Done]);
    assert_eq!((&asked[3], ends(&asked[4])), (&Effect::DeleteBefore(0), Some(State::Error)));
    let foreign = PodObservation { genuine: false, ..pending() };
    let foreign = EffectResult::Found(Found::There(Box::new(foreign)));
    let asked = run(Launch::begin(Job { signed: true, ..ROUND_POD }), [EffectResult::Done, quota(), foreign]);
    assert_eq!(
        asked[3],
        Effect::Settle(Settled::Postponed(Obstacle::Quota, "no room".into())),
        "as if it weren't there"
    );
    let unknown = run(Launch::begin(ROUND_POD), [EffectResult::Done, quota(), EffectResult::Unknown("away".into())]);
    assert_eq!(unknown[3], Effect::Settle(Settled::TryAgain("away".into())));
}

/// A backup may be older than the pod: the submission waits in it, and its driver runs.
#[test]
fn a_driver_that_runs_unrecorded_is_adopted_without_creating_its_objects_again() {
    let found = |pod| EffectResult::Found(Found::There(Box::new(pod)));
    let before = [EffectResult::Done, EffectResult::Taken("taken".into())];
    let asked = run(Launch::begin(ROUND_POD), before.clone().into_iter().chain([found(running()), recorded()]));
    let launched = Placement { pod_uid: Some("u".to_owned()), ..Placement::default() };
    let adopted = [Effect::RecordPod("u".to_owned()), Effect::Advance(StateChange::Launched, launched)];
    assert_eq!(asked[3..], adopted);

    let moved = || EffectResult::Moved(true);
    let asked =
        run(Launch::begin(ROUND_POD), before.clone().into_iter().chain([found(running()), recorded(), moved()]));
    assert!(matches!(asked[5], Effect::Advance(StateChange::Running, _)), "{asked:?}");
    let ended = observed(Phase::Succeeded, exit(0));
    let asked = run(
        Launch::begin(ROUND_POD),
        before.clone().into_iter().chain([found(ended.clone()), recorded(), moved(), moved()]),
    );
    assert_eq!(ends(&asked[5]), Some(State::Finished), "{asked:?}");
    assert_eq!(asked[6], Effect::RemoveFinalizer("u".to_owned()), "it isn't deleted");
    let claim_lost = [found(ended), recorded(), moved(), EffectResult::Moved(false)];
    let asked = run(Launch::begin(ROUND_POD), before.clone().into_iter().chain(claim_lost));
    assert_eq!(asked[6], Effect::Settle(Settled::Done), "the finalizer holds an end that isn't recorded");

    let evicted = PodObservation { reason: Some("Evicted".to_owned()), ..observed(Phase::Failed, Container::Absent) };
    let answers = [found(evicted), recorded(), EffectResult::Done, moved(), moved()];
    let asked = run(Launch::begin(ROUND_POD), before.clone().into_iter().chain(answers));
    assert_eq!(asked[4], Effect::HandOver(0, "u".to_owned()));
    assert_eq!(ends(&asked[6]), Some(State::Failed), "it gets no more objects: {asked:?}");

    let waiting = observed(Phase::Pending, Container::Waiting { reason: None, message: None });
    let answers = [found(waiting), recorded(), EffectResult::Done];
    let asked = run(Launch::begin(ROUND_POD), before.into_iter().chain(answers));
    assert_eq!(asked[4], Effect::HandOver(0, "u".to_owned()), "the objects that it can't start without may be missing");
    let older = Driver { uid: "u".to_owned(), is_older: true };
    assert_eq!(asked[5], Effect::CreateBeside(0, older), "or exist: an unrecorded Secret of an earlier try is ours");
}

#[test]
fn a_pod_of_a_later_attempt_than_that_of_a_restored_row_is_left_to_its_launch() {
    let second = PodObservation { attempt: 2, ..running() };
    let of = |state, attempt, uid| EffectResult::Row(Some(Row { attempt, pod: None, ..row(state, uid) }));
    let done = Effect::Settle(Settled::Done);
    let follow = |answer| run(Follow::observed(Box::new(second.clone())), [answer]).remove(1);
    assert_eq!(follow(of(State::Running, 1, Some("first"))), done, "the row is an attempt behind");
    assert_eq!(follow(of(State::Queued, 2, None)), done, "the launch records the names of the attempt");
    assert!(matches!(follow(of(State::Launching, 2, None)), Effect::Advance(StateChange::Running, _)));
    assert_eq!(
        follow(of(State::Lost, 1, Some("first"))),
        Effect::LookUp,
        "the row has ended without reaching the attempt"
    );
    let ended = PodObservation { phase: Phase::Succeeded, container: exit(0), ..second.clone() };
    let kept = run(Follow::observed(Box::new(ended)), [of(State::Running, 1, Some("first"))]);
    assert_eq!(kept[1], done, "the finalizer holds its outcome");
}

mod changed;
mod killed;
mod restarted;
