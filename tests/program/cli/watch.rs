//! `sparkgate list --watch`.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::cli::{
    played::{Asked, Played, Reply, json_answer, problem, stream, submission},
    run::start,
};

const FIRST: &str = "driver-20260102030405-0001";
const SECOND: &str = "driver-20260102030405-0002";
const THIRD: &str = "driver-20260102030405-0003";

fn event(sequence: u64, id: &str) -> String {
    let data = json!({"sequence": sequence, "submissionId": id, "attempt": 1, "state": "RUNNING"});
    format!("id: {sequence}\nevent: state\ndata: {data}\n\n")
}

fn page(items: &[Value]) -> Reply {
    json_answer(200, &json!({ "items": items }))
}

/// Returns the first lines of a command, and ends it.
fn first_lines(gateway: &Played, words: &[&str], count: usize) -> Vec<String> {
    let mut child = start(gateway, words);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(count).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    lines
}

fn is_position(asked: &Asked) -> bool {
    asked.what == "GET /v1/events" && asked.query == "limit=1"
}

#[test]
fn each_change_is_printed_once_also_after_a_broken_connection() {
    let gateway = Played::new(|asked| match asked.what.as_str() {
        _ if is_position(asked) => json_answer(200, &json!({"items": [], "next": "7"})),
        "GET /v1/events" => match asked.headers["last-event-id"].as_str() {
            // The first event is of before the list.
            "7" => {
                stream("text/event-stream", &[&event(8, FIRST), &event(9, SECOND), "id: 10\nevent: state\nda"], false)
            }
            "9" if asked.before == 2 => problem(503, "unavailable", "Unavailable", "It begins."),
            // Sent again, and a new one.
            "9" => stream("text/event-stream", &[&event(9, SECOND), &event(10, THIRD)], true),
            other => panic!("{other}"),
        },
        _ if asked.query.contains(&format!("id={SECOND}")) => page(&[submission(SECOND, "RUNNING")]),
        _ if asked.query.contains(&format!("id={THIRD}")) => page(&[submission(THIRD, "QUEUED")]),
        _ if asked.query.contains("id=") => page(&[submission(FIRST, "FINISHED")]),
        _ => page(&[submission(SECOND, "QUEUED"), submission(FIRST, "FINISHED")]),
    });
    let lines = first_lines(&gateway, &["list", "-w", "--owner", "alice"], 5);
    let rows: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    let seen: Vec<(&str, &str)> = rows.iter().map(|row| (row[0], row[2])).collect();
    assert_eq!(
        seen,
        [("ID", "STATE"), (SECOND, "QUEUED"), (FIRST, "FINISHED"), (SECOND, "RUNNING"), (THIRD, "QUEUED")]
    );
    assert_eq!(lines[0].find("OWNER"), lines[3].find("alice"), "rows are aligned with the titles");
    let asked = gateway.asked();
    assert!(is_position(&asked[0]) && asked[1].query.contains("owner=alice"), "the position comes before the list");
    assert!(asked[2].query.contains("owner=alice"), "{asked:?}");
}

#[test]
fn a_submission_that_no_longer_matches_is_printed_with_its_new_state() {
    let gateway = Played::new(|asked| match asked.what.as_str() {
        _ if is_position(asked) => json_answer(200, &json!({"items": [], "next": "7"})),
        "GET /v1/events" => stream("text/event-stream", &[&event(8, SECOND), &event(9, FIRST)], true),
        // Neither matches any more, and only one was printed.
        _ if asked.query.contains("id=") => page(&[]),
        "GET /v1/submissions" => page(&[submission(FIRST, "RUNNING")]),
        _ => json_answer(200, &submission(FIRST, "FAILED")),
    });
    let lines = first_lines(&gateway, &["list", "--watch", "--state", "running", "-o", "json"], 2);
    let states: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["state"].clone()).collect();
    assert_eq!(states, ["RUNNING", "FAILED"]);
    assert!(gateway.asked().iter().any(|asked| asked.query.contains("state=RUNNING") && asked.query.contains("id=")));
}

#[test]
fn a_position_that_is_not_kept_any_more_begins_with_the_list_again() {
    let gateway = Played::new(|asked| match asked.what.as_str() {
        _ if is_position(asked) => {
            json_answer(200, &json!({"items": [], "next": if asked.before == 0 { "7" } else { "90" }}))
        }
        "GET /v1/events" => match asked.headers["last-event-id"].as_str() {
            "7" => problem(410, "cursor-expired", "What comes after the cursor is not kept any more", "Start again."),
            _ => stream("text/event-stream", &[&event(91, THIRD)], true),
        },
        _ if asked.query.contains("id=") => page(&[submission(THIRD, "QUEUED")]),
        _ if asked.before == 0 => page(&[submission(FIRST, "RUNNING")]),
        _ => page(&[submission(SECOND, "QUEUED"), submission(FIRST, "RUNNING")]),
    });
    let lines = first_lines(&gateway, &["list", "-w", "-o", "name"], 3);
    assert_eq!(lines, [FIRST, SECOND, THIRD], "only what is new is printed");
}
