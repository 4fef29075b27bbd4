//! `sparkgate wait`, `submit --wait`, and the output of `status`.

use std::{
    io::{BufRead, BufReader, Read},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cli::{
    played::{Asked, Played, Reply, json_answer, problem, submission},
    run::{run, start},
};

const ID: &str = "driver-20260102030405-0001";

fn failed() -> Value {
    let mut failed = submission(ID, "FAILED");
    failed["startedAt"] = json!("2026-01-02T03:04:10.000Z");
    failed["finishedAt"] = json!("2026-01-02T03:05:12.000Z");
    failed["exitCode"] = json!(3);
    failed["failure"] = json!({"code": "APPLICATION_ERROR", "class": "application", "exitCode": 3,
        "message": "the driver exited with code 3", "logTail": "Traceback\nValueError: no\n"});
    failed
}

/// Plays a life: queued, pending without a node, running, failed. In between the gateway is unavailable.
fn a_life(asked: &Asked) -> Reply {
    match (asked.what.split('?').next().unwrap(), asked.before) {
        ("POST /v1/submissions", _) => json_answer(201, &submission(ID, "QUEUED")),
        (what, 0) if what.ends_with("-0001") => json_answer(200, &submission(ID, "QUEUED")),
        (what, _) if what.ends_with("-0001") => json_answer(200, &failed()),
        (_, 0) => {
            let mut pending = submission(ID, "PENDING");
            pending["waiting"] = json!({"code": "UNSCHEDULABLE", "class": "capacity", "message": "0/3 nodes"});
            json_answer(200, &pending)
        }
        (_, 1) => problem(503, "unavailable", "Unavailable", "Postgres is away."),
        (_, 2) => Reply::HangUp,
        (_, 3) => {
            let mut running = submission(ID, "RUNNING");
            running["driver"] = json!({"pod": "pi-driver", "node": "n1"});
            json_answer(200, &running)
        }
        _ => json_answer(200, &failed()),
    }
}

#[test]
fn submit_with_wait_prints_the_states_and_exits_with_the_outcome() {
    let gateway = Played::new(a_life);
    let ended = run(&gateway, &["submit", "--wait", "local:///a.py"]);
    assert_eq!((ended.code, ended.stdout), (Some(3), format!("{ID}\n")), "{}", ended.stderr);
    assert_eq!(
        ended.stderr.lines().collect::<Vec<_>>(),
        [
            "QUEUED",
            "PENDING: UNSCHEDULABLE: 0/3 nodes",
            "RUNNING on n1",
            "FAILED after 1m 2s",
            "driver-20260102030405-0001 FAILED: APPLICATION_ERROR: the driver exited with code 3",
            "Traceback",
            "ValueError: no",
        ]
    );
    let polls: Vec<String> =
        gateway.asked().into_iter().filter(|a| a.what.ends_with("/wait")).map(|a| a.query).collect();
    assert_eq!(polls[0], "timeoutSeconds=10&state=PENDING");
    assert_eq!(polls[1..4], ["timeoutSeconds=10&state=RUNNING"; 3]);
    assert_eq!(polls[4..], ["timeoutSeconds=50&state=KILLING"]);
}

#[test]
fn wait_prints_only_the_final_state() {
    let gateway = Played::new(a_life);
    let ended = run(&gateway, &["wait", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), "FAILED\n"), "{}", ended.stderr);
    let gateway = Played::new(a_life);
    let ended = run(&gateway, &["wait", ID, "-o", "json"]);
    assert_eq!((ended.code, ended.stdout), (Some(3), format!("{}\n", failed())));
}

#[test]
fn wait_for_a_state_returns_in_that_state() {
    let gateway = Played::new(a_life);
    let ended = run(&gateway, &["wait", ID, "--for", "pending"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "PENDING\n"), "{}", ended.stderr);
    assert_eq!(gateway.asked().iter().filter(|asked| asked.what.ends_with("/wait")).count(), 1);
}

#[test]
fn a_timeout_of_wait_has_an_exit_code_of_its_own() {
    let gateway = Played::new(|_| json_answer(200, &submission(ID, "RUNNING")));
    let ended = run(&gateway, &["wait", ID, "--timeout", "0s"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(124), ""));
    assert!(ended.stderr.contains("is still RUNNING"), "{}", ended.stderr);
}

#[test]
fn an_unknown_submission_has_an_exit_code_of_its_own() {
    let gateway = Played::new(|_| problem(404, "submission-not-found", "Submission not found", "There is none."));
    for command in ["status", "wait", "logs", "events", "kill"] {
        let ended = run(&gateway, &[command, ID]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(4), ""), "{command}");
        assert!(ended.stderr.contains("Submission not found: There is none."), "{}", ended.stderr);
    }
}

#[test]
fn status_shows_why_it_failed() {
    let gateway = Played::new(|_| json_answer(200, &failed()));
    let ended = run(&gateway, &["status", ID]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "status itself succeeds");
    for part in ["State:       FAILED (after 1m 2s, exit code 3)\n", "Owner:       alice\n", "    ValueError: no\n"] {
        assert!(ended.stdout.contains(part), "{}", ended.stdout);
    }
    assert_eq!(run(&gateway, &["status", ID, "-o", "json"]).stdout, format!("{}\n", failed()));
}

#[test]
fn submit_with_wait_prints_the_attempts_between() {
    let attempt = |number: u32, state: &str| {
        let mut submission = submission(ID, state);
        submission["attempt"] = json!(number);
        submission
    };
    let gateway = Played::new(move |asked| match (asked.what.as_str(), asked.before) {
        ("POST /v1/submissions", _) => json_answer(201, &attempt(1, "QUEUED")),
        (what, _) if what.ends_with("/attempts") => json_answer(
            200,
            &json!({"items": [
                {"attempt": 1, "state": "FAILED", "startedAt": "2026-01-02T03:04:10.000Z", "finishedAt":
                    "2026-01-02T03:04:13.000Z", "failure": {"code": "APPLICATION_ERROR", "class": "application", "message": "code 3"}},
                {"attempt": 2, "state": "LOST", "failure": {"code": "POD_DELETED", "message": "it was deleted"}},
                {"attempt": 3, "state": "RUNNING"}]}),
        ),
        (what, 0) if what.ends_with("-0001") => json_answer(200, &attempt(1, "RUNNING")),
        // Two attempts ended between two polls.
        (what, 0) if what.ends_with("/wait") => json_answer(200, &attempt(3, "RUNNING")),
        _ => json_answer(200, &attempt(3, "FINISHED")),
    });
    let ended = run(&gateway, &["submit", "--wait", "local:///a.py"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended.stderr.lines().collect::<Vec<_>>(),
        [
            "RUNNING",
            "FAILED (attempt 1) after 3s: APPLICATION_ERROR: code 3",
            "LOST (attempt 2): POD_DELETED: it was deleted",
            "RUNNING (attempt 3)",
            "FINISHED (attempt 3)",
        ]
    );
}

#[test]
fn an_interrupted_submit_with_wait_says_that_the_submission_goes_on() {
    let gateway = Played::new(|asked| match asked.what.ends_with("/wait") {
        // A long poll.
        true => {
            std::thread::sleep(Duration::from_secs(60));
            Reply::HangUp
        }
        false => json_answer(200, &submission(ID, "RUNNING")),
    });
    let mut child = start(&gateway, &["submit", "--wait", "local:///a.py"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert_eq!(said, "RUNNING\n");
    while !gateway.asked().iter().any(|asked| asked.what.ends_with("/wait")) {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    stderr.read_to_string(&mut said).unwrap();
    for part in [format!("{ID} is not affected"), format!("sparkgate wait {ID}"), format!("sparkgate kill {ID}")] {
        assert!(said.contains(&part), "{said}");
    }
}
