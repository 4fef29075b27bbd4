use chrono::{DateTime, Utc};

use super::*;
use crate::history::{Act, Answer, Attempt, Call, Change, Document, Event, Follower, Job, Line, Pod, Reply};

const ID: &str = "driver-1";

fn document(state: &str, attempt: i64) -> Document {
    Document { id: ID.to_owned(), state: state.to_owned(), attempt, exit_code: None }
}

fn reply(status: u16, document: Option<Document>) -> Answer {
    Answer::Reply(Reply { status, document, ..Reply::default() })
}

fn call(began: u64, act: Act, answer: Answer) -> Call {
    Call { began, ended: began + 5, act, answer }
}

fn read(began: u64, state: &str, attempt: i64) -> Call {
    call(began, Act::Read { id: ID.to_owned() }, reply(200, Some(document(state, attempt))))
}

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn changes() -> Vec<Change> {
    let all = [
        (1, "QUEUED", None),
        (1, "LAUNCHING", Some("QUEUED")),
        (1, "RUNNING", Some("LAUNCHING")),
        (1, "FAILED", Some("RUNNING")),
        (2, "QUEUED", Some("FAILED")),
        (2, "QUEUED", Some("QUEUED")),
        (2, "RUNNING", Some("QUEUED")),
        (2, "FINISHED", Some("RUNNING")),
    ];
    let change = |(number, (attempt, state, previous)): (usize, (i64, &str, Option<&str>))| Change {
        sequence: Some(i64::try_from(number).unwrap() + 11),
        submission_id: ID.to_owned(),
        attempt,
        state: state.to_owned(),
        previous: previous.map(str::to_owned),
    };
    all.into_iter().enumerate().map(change).collect()
}

/// A job with a retry. Its create was repeated, a second job's was refused.
fn good() -> History {
    let attempt = |attempt: i64, state: &str| Attempt {
        attempt,
        state: state.to_owned(),
        started_at: Some(time(attempt * 10 + 2)),
        finished_at: Some(time(attempt * 10 + 5)),
    };
    let create = |began, job, answer| call(began, Act::Create { job }, answer);
    let follow = |follower: &str| {
        let event = |change| Event { follower: follower.to_owned(), at: 200, change };
        changes().into_iter().map(event).collect::<Vec<_>>()
    };
    let pod = |attempt, uid: &str| Pod { uid: uid.to_owned(), submission: ID.to_owned(), attempt, started: true };
    History {
        jobs: vec![Job { job: 1, ends: Some("FINISHED".to_owned()) }, Job { job: 2, ends: None }],
        calls: vec![
            create(0, 1, Answer::Lost),
            create(10, 1, reply(201, Some(document("QUEUED", 1)))),
            create(20, 1, reply(200, Some(document("QUEUED", 1)))),
            create(20, 2, reply(503, None)),
            create(30, 2, reply(400, None)),
            read(40, "RUNNING", 1),
            read(41, "LAUNCHING", 1),
            read(60, "QUEUED", 2),
            read(300, "FINISHED", 2),
        ],
        followers: vec![
            Follower { follower: "a".to_owned(), after: 10 },
            Follower { follower: "b".to_owned(), after: 13 },
        ],
        events: [follow("a"), follow("b").split_off(3)].concat(),
        found: vec![Found {
            job: 1,
            document: document("FINISHED", 2),
            attempts: vec![attempt(2, "FINISHED"), attempt(1, "FAILED")],
            events: changes(),
        }],
        pods: vec![pod(1, "u1"), pod(2, "u2")],
    }
}

/// The first promise that the changed history breaks.
fn broken(change: impl FnOnce(&mut History)) -> Option<Promise> {
    let mut history = good();
    change(&mut history);
    judge(&history).broken.first().map(|(promise, _)| *promise)
}

#[test]
fn a_good_history_breaks_no_promise_and_has_a_case_of_most() {
    let mut history = good();
    history.calls[3].answer = Answer::NotSent;
    let verdict = judge(&history);
    assert_eq!(verdict.broken, []);
    let without: Vec<_> = Promise::ALL.into_iter().filter(|promise| !verdict.checked.contains_key(promise)).collect();
    assert_eq!(without, [Promise::KillIsFinal]);
}

#[test]
fn lost_submissions_are_found() {
    assert_eq!(broken(|it| it.found.clear()), Some(Promise::Kept));
    assert_eq!(broken(|it| it.calls[7].answer = reply(404, None)), Some(Promise::Kept));
}

#[test]
fn second_submissions_of_a_job_are_found() {
    let other = |found: &mut Found| found.document.id = "driver-2".to_owned();
    let add = |it: &mut History| {
        let mut second = it.found[0].clone();
        other(&mut second);
        it.found.push(second);
    };
    assert_eq!(broken(add), Some(Promise::Once));
    let second = Some(Document { id: "driver-2".to_owned(), ..document("QUEUED", 1) });
    let twice = broken(|it| it.calls[2].answer = reply(201, second));
    assert_eq!(twice, Some(Promise::Kept), "the second isn't there at the end, either");
}

#[test]
fn what_a_refused_create_left_is_found() {
    let left = |it: &mut History| {
        let mut second = it.found[0].clone();
        (second.job, second.document.id) = (2, "driver-2".to_owned());
        it.found.push(second);
    };
    assert_eq!(broken(left), None, "the 503 without Retry-After left it in doubt");
    let refused = broken(|it| {
        left(it);
        it.calls[3].answer = Answer::Reply(Reply { status: 503, retry_after: true, ..Reply::default() });
    });
    assert_eq!(refused, Some(Promise::NothingHalfDone));
}

#[test]
fn states_that_go_back_are_found() {
    assert_eq!(broken(|it| it.calls.push(read(70, "RUNNING", 1))), Some(Promise::Forward));
    assert_eq!(broken(|it| it.calls.push(read(310, "FAILED", 2))), Some(Promise::Forward));
    assert_eq!(
        broken(|it| it.calls.push(read(64, "FAILED", 1))),
        None,
        "it may have been carried out before the other"
    );
    let after_its_event = broken(|it| it.calls.push(read(210, "RUNNING", 2)));
    assert_eq!(after_its_event, Some(Promise::Forward));
}

#[test]
fn wrong_ends_are_found() {
    let end = |it: &mut History, state: &str| {
        it.calls.pop();
        it.found[0].document.state = state.to_owned();
        it.found[0].events[7].state = state.to_owned();
        it.events.clear();
        it.followers.clear();
    };
    assert_eq!(broken(|it| end(it, "RUNNING")), Some(Promise::Ended));
    assert_eq!(broken(|it| end(it, "FAILED")), Some(Promise::TrueEnd));
    assert_eq!(broken(|it| end(it, "KILLED")), Some(Promise::TrueEnd), "no client asked for it");
    let kill = |began, attempt| {
        let answer = reply(202, Some(document("RUNNING", attempt)));
        call(began, Act::Kill { id: ID.to_owned() }, answer)
    };
    let killed = |began, attempt| {
        broken(|it| {
            end(it, "KILLED");
            it.calls.push(kill(began, attempt));
        })
    };
    assert_eq!(killed(80, 2), None);
    assert_eq!(killed(45, 1), Some(Promise::KillIsFinal));
}

#[test]
fn overlapping_attempts_and_second_drivers_are_found() {
    let late = |it: &mut History| it.found[0].attempts[1].finished_at = Some(time(23));
    assert_eq!(broken(late), Some(Promise::NoOverlap));
    assert_eq!(broken(|it| it.found[0].attempts.truncate(1)), Some(Promise::NoOverlap));
    assert_eq!(broken(|it| it.pods[1].attempt = 1), Some(Promise::OneDriver));
    let never_started = |it: &mut History| (it.pods[1].attempt, it.pods[1].started) = (1, false);
    assert_eq!(broken(never_started), None);
}

#[test]
fn wrong_events_are_found() {
    let events = |change: fn(&mut Vec<Event>)| broken(|it| change(&mut it.events));
    assert_eq!(events(|it| drop(it.remove(0))), Some(Promise::Events), "the first is missing");
    assert_eq!(events(|it| it.retain(|event| event.follower == "a")), Some(Promise::Events), "nothing was read");
    assert_eq!(events(|it| it[7].change.sequence = Some(19)), Some(Promise::Events), "one that there isn't");
    assert_eq!(events(|it| drop(it.remove(4))), Some(Promise::Events), "a gap");
    assert_eq!(events(|it| drop(it.pop())), Some(Promise::Events), "the last is missing");
    assert_eq!(events(|it| it.swap(2, 3)), Some(Promise::Events), "the order");
    assert_eq!(events(|it| it.insert(3, it[2].clone())), Some(Promise::Events), "one twice");
    assert_eq!(events(|it| it[2].change.state = "PENDING".to_owned()), Some(Promise::Events), "another change");
    assert_eq!(broken(|it| drop(it.found[0].events.pop())), Some(Promise::Events), "not its end");
}

#[test]
fn a_history_is_read_as_it_was_written() {
    let (good, mut file) = (good(), Vec::new());
    let lines = good.jobs.iter().cloned().map(Line::Job).chain(good.calls.iter().cloned().map(Line::Call));
    for line in lines.chain(good.found.iter().cloned().map(Line::Found)) {
        crate::history::write(&mut file, &line).unwrap();
    }
    let read = History::read(&file[..]).unwrap();
    assert_eq!((&read.jobs, &read.calls, &read.found), (&good.jobs, &good.calls, &good.found));
    assert_eq!(History::read(&file[..file.len() - 9]).unwrap().found, [], "the last line is cut off");
    assert!(History::read(&file[9..]).is_err());
}

#[test]
fn the_page_has_each_promise() {
    let page = include_str!("../../../docs/operate/check.md");
    for promise in Promise::ALL {
        assert!(page.contains(&format!("| {promise} |")), "{promise}");
    }
}
