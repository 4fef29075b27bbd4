//! `sparkgate audit`.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::cli::{
    played::{Played, json_answer, problem},
    run::{run, start},
};

const ID: &str = "driver-20260102030405-0001";

fn entry(id: u64, action: &str) -> Value {
    json!({"id": id, "at": "2026-01-02T03:04:05.678Z", "subject": "corp:alice", "provider": "oidc", "address": "10.0.0.7",
        "action": action, "tenant": "analytics", "submission": ID, "verdict": "allowed", "requestId": "r1"})
}

/// Plays a log of two pages.
fn log() -> Played {
    Played::new(|asked| match asked.query.contains("after=1") {
        false => json_answer(200, &json!({"entries": [entry(1, "submit")], "next": 1})),
        true => json_answer(200, &json!({"entries": [entry(2, "kill")], "next": null})),
    })
}

#[test]
fn all_pages_of_the_audit_log_are_one_table() {
    let gateway = log();
    let ended = run(&gateway, &["audit", "--submission", ID, "--tenant", "analytics"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let first: Vec<String> =
        ended.stdout.lines().map(|line| line.split_whitespace().take(5).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        first,
        [
            "TIME SUBJECT ADDRESS ACTION VERDICT",
            "2026-01-02T03:04:05Z corp:alice 10.0.0.7 submit allowed",
            "2026-01-02T03:04:05Z corp:alice 10.0.0.7 kill allowed"
        ]
    );
    let queries: Vec<String> = gateway.asked().into_iter().map(|asked| asked.query).collect();
    let filter = format!("limit=500&submission={ID}&tenant=analytics");
    assert_eq!(queries, [filter.clone(), format!("after=1&{filter}")]);
    let ended = run(&log(), &["audit", "-o", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document, json!({"entries": [entry(1, "submit"), entry(2, "kill")]}));
}

#[test]
fn an_empty_audit_log_is_noted() {
    let gateway = Played::new(|_| json_answer(200, &json!({"entries": []})));
    let ended = run(&gateway, &["audit", "--after", "7"]);
    assert_eq!((ended.code, ended.stderr.as_str(), ended.stdout.lines().count()), (Some(0), "no entries\n", 1));
    assert_eq!(gateway.asked()[0].query, "after=7&limit=500");
}

#[test]
fn a_followed_audit_log_continues_after_its_last_entry_and_after_a_restart() {
    let gateway = Played::new(|asked| match (asked.query.as_str(), asked.before) {
        ("limit=500", _) => json_answer(200, &json!({"entries": [entry(1, "submit")]})),
        // All tries of one call.
        (_, 1..6) => problem(503, "unavailable", "Unavailable", "It begins."),
        ("after=1&limit=500", 6) => json_answer(200, &json!({"entries": []})),
        ("after=1&limit=500", _) => json_answer(200, &json!({"entries": [entry(2, "kill")]})),
        _ => json_answer(200, &json!({"entries": [entry(3, "token.create")]})),
    });
    let mut child = start(&gateway, &["audit", "-f", "-o", "json"]);
    let lines: Vec<Value> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .take(3)
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lines, [entry(1, "submit"), entry(2, "kill"), entry(3, "token.create")]);
}
