//! `sparkgate events`.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::cli::{
    played::{Played, json_answer, problem, stream, submission},
    run::{run, start},
};

const ID: &str = "driver-20260102030405-0001";

fn change(sequence: u64, state: &str) -> Value {
    json!({"sequence": sequence, "submissionId": ID, "attempt": 1, "state": state, "at": "2026-01-02T03:04:05.000Z"})
}

fn sent(sequence: u64, state: &str) -> String {
    format!("id: {sequence}\nevent: state\ndata: {}\n\n", change(sequence, state))
}

#[test]
fn an_interrupted_stream_resumes_after_the_last_event() {
    let gateway = Played::new(|asked| match (asked.what.as_str(), asked.before) {
        ("GET /v1/events", 0) => {
            let heard = format!("retry: 1000\n\n: heartbeat\n\n{}", sent(7, "RUNNING"));
            stream("text/event-stream", &[&heard, &sent(8, "KILLING")[..20]], false)
        }
        ("GET /v1/events", 1) => problem(503, "unavailable", "Unavailable", "It begins."),
        _ => stream("text/event-stream", &[&sent(8, "KILLING"), &sent(12, "KILLED")], true),
    });
    let mut child = start(&gateway, &["events", "-o", "json", "--owner", "alice"]);
    let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap()).lines().take(3).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        lines,
        [change(7, "RUNNING"), change(8, "KILLING"), change(12, "KILLED")].map(|change| change.to_string())
    );
    let asked = gateway.asked();
    let last: Vec<Option<&str>> =
        asked.iter().take(3).map(|asked| asked.headers.get("last-event-id").map(String::as_str)).collect();
    assert_eq!(last, [None, Some("7"), Some("7")]);
    assert_eq!(
        (asked[0].query.as_str(), asked[0].headers["accept"].contains("text/event-stream")),
        ("owner=alice", true)
    );
}

#[test]
fn events_of_one_submission_are_printed_from_its_first_to_its_last() {
    let history = format!("GET /v1/submissions/{ID}/events");
    let gateway = Played::new(move |asked| match asked.what.as_str() {
        "GET /v1/events" => stream("text/event-stream", &[&sent(9, "FINISHED")], false),
        what if what == history && asked.query.is_empty() => {
            json_answer(200, &json!({"items": [change(3, "QUEUED")], "next": "3"}))
        }
        what if what == history => {
            // The newest event has no number yet; it arrives with the stream.
            let mut newest = change(0, "FINISHED");
            newest.as_object_mut().unwrap().remove("sequence");
            json_answer(200, &json!({"items": [change(5, "RUNNING"), newest]}))
        }
        _ => json_answer(200, &submission(ID, "FINISHED")),
    });
    let ended = run(&gateway, &["events", ID]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let states: Vec<&str> = ended.stdout.lines().map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!(states, ["QUEUED", "RUNNING", "FINISHED"]);
    let asked = gateway.asked();
    let stream = asked.iter().find(|asked| asked.what == "GET /v1/events").unwrap();
    assert_eq!(
        (stream.query.as_str(), stream.headers["last-event-id"].as_str()),
        (format!("submission={ID}").as_str(), "5")
    );
}

#[test]
fn events_of_one_submission_end_although_the_gateway_restarts_at_its_end() {
    let one = format!("GET /v1/submissions/{ID}");
    let gateway = Played::new(move |asked| match (asked.what.as_str(), asked.before) {
        // All tries of the first look at the submission.
        (what, 0..5) if what == one => problem(503, "unavailable", "Unavailable", "It begins."),
        (what, _) if what == one => json_answer(200, &submission(ID, "FINISHED")),
        ("GET /v1/events", 0) => stream("text/event-stream", &[&sent(9, "FINISHED")], false),
        (what, _) if what.ends_with("/events") && what != "GET /v1/events" => {
            json_answer(200, &json!({"items": [change(3, "RUNNING")]}))
        }
        other => panic!("{other:?}: no further event comes"),
    });
    let ended = run(&gateway, &["events", ID]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 2, "{}", ended.stdout);
}

#[test]
fn an_interrupted_stream_without_events_resumes_at_its_position() {
    let gateway = Played::new(|asked| match asked.before {
        0 => stream("text/event-stream", &["retry: 1000\n\nid: 41\n\n", ":\nid: 43\n\n"], false),
        _ => stream("text/event-stream", &[&sent(44, "RUNNING")], true),
    });
    let mut child = start(&gateway, &["events", "-o", "json"]);
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(line, change(44, "RUNNING").to_string());
    assert_eq!(gateway.asked()[1].headers["last-event-id"], "43", "or the events in between would be missed");
}
