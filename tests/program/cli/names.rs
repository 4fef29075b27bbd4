//! Submissions that are named by the beginning of their id, and several of them.

use serde_json::{Value, json};

use crate::cli::{
    played::{Played, Reply, json_answer, problem, stream, submission},
    run::run,
};

const FIRST: &str = "driver-20260102030405-0001";
const SECOND: &str = "driver-20260102030405-0002";
const OTHER: &str = "driver-20260103030405-0003";

/// A gateway with three submissions.
fn gateway() -> Played {
    Played::new(|asked| {
        let state = |id: &str| if id == SECOND { "FAILED" } else { "FINISHED" };
        let (_, path) = asked.what.split_once("/v1/submissions").unwrap_or_else(|| panic!("{}", asked.what));
        let mut parts = path.trim_start_matches('/').split('/');
        match (parts.next().unwrap(), parts.next()) {
            ("", None) => {
                let prefix = asked.query.strip_prefix("id=").unwrap().split('&').next().unwrap();
                let found = [OTHER, SECOND, FIRST].into_iter().filter(|id| id.starts_with(prefix));
                json_answer(200, &json!({"items": found.map(|id| submission(id, state(id))).collect::<Vec<_>>()}))
            }
            (id, None | Some("wait")) if [FIRST, SECOND, OTHER].contains(&id) => {
                json_answer(200, &submission(id, state(id)))
            }
            (id, Some("attempts")) => json_answer(200, &json!({"items": [{"attempt": 1, "state": state(id)}]})),
            (_, Some("executors")) => {
                json_answer(200, &json!({"items": [{"id": 1, "attempt": 1, "state": "RUNNING", "pod": "p"}]}))
            }
            (id, Some("manifest")) => json_answer(200, &json!({"kind": "List", "items": [{"of": id}]})),
            (id, Some("logs")) => stream("text/plain", &[&format!("log of {id}\n")], true),
            _ => problem(404, "submission-not-found", "There is no such submission", "There is none."),
        }
    })
}

#[test]
fn the_beginning_of_an_id_names_its_submission() {
    for name in ["20260103", "driver-20260103", "driver-20260103030405-00", "20260103030405-0003"] {
        let gateway = gateway();
        let ended = run(&gateway, &["status", name, "-o", "json"]);
        assert_eq!(ended.code, Some(0), "{name}: {}", ended.stderr);
        assert!(ended.stdout.contains(OTHER), "{name}: {}", ended.stdout);
        let looks = gateway.asked().iter().filter(|asked| asked.what == "GET /v1/submissions").count();
        assert_eq!(looks, usize::from(!name.ends_with("0003")), "a whole id isn't looked for");
    }
    let gateway = gateway();
    assert_eq!(run(&gateway, &["kill", "20260103"]).stdout, format!("{OTHER} FINISHED\n"));
    assert_eq!(gateway.asked().last().unwrap().what, format!("DELETE /v1/submissions/{OTHER}"));
}

#[test]
fn an_ambiguous_beginning_changes_nothing_and_says_what_is_missing() {
    let gateway = gateway();
    let ended = run(&gateway, &["kill", "20260102"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    for part in ["driver-20260102 is the beginning of 2 ids", FIRST, SECOND, "14 digits"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    assert_eq!(gateway.asked().len(), 1);
    let ended = run(&gateway, &["status", "20260102030405"]);
    assert!(ended.stderr.contains("give the number after it"), "{}", ended.stderr);
    let ended = run(&gateway, &["wait", "20270101"]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains("whose id begins with driver-20270101"), "{}", ended.stderr);
}

#[test]
fn a_name_that_can_not_be_one_is_refused_without_a_gateway() {
    let gateway = Played::new(|_| Reply::HangUp);
    for (words, part) in [
        (&["status", "2026"][..], "20260102"),
        (&["logs", "pi-driver"], "driver-20260102030405-0001"),
        (&["kill", "@latest"], "give its id"),
    ] {
        let ended = run(&gateway, words);
        assert_eq!(ended.code, Some(2), "{words:?}");
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    assert!(gateway.asked().is_empty());
}

#[test]
fn wait_waits_for_all_and_returns_the_first_code_that_is_not_0() {
    let ended = run(&gateway(), &["wait", FIRST, SECOND, OTHER]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_unstable();
    let expected =
        [(FIRST, "FINISHED"), (SECOND, "FAILED"), (OTHER, "FINISHED")].map(|(id, state)| format!("{id} {state}"));
    assert_eq!(lines, expected);
    assert_eq!(run(&gateway(), &["wait", FIRST, OTHER]).code, Some(0));
    assert_eq!(run(&gateway(), &["wait", FIRST, "driver-20260102030405-0009"]).code, Some(4));
}

#[test]
fn tables_and_logs_of_several_submissions_name_them() {
    let ended = run(&gateway(), &["attempts", FIRST, SECOND]);
    let expected = format!(
        "SUBMISSION                  ATTEMPT  STATE     DURATION  FAILURE\n{FIRST}  1        FINISHED\n{SECOND}  1        FAILED\n"
    );
    assert_eq!((ended.code, ended.stdout), (Some(0), expected), "{}", ended.stderr);
    let ended = run(&gateway(), &["executors", FIRST, SECOND]);
    assert!(
        ended.stdout.starts_with("SUBMISSION") && ended.stdout.contains(&format!("{SECOND}  1 ")),
        "{}",
        ended.stdout
    );
    let ended = run(&gateway(), &["logs", FIRST, SECOND]);
    let expected = format!("==> {FIRST} <==\nlog of {FIRST}\n\n==> {SECOND} <==\nlog of {SECOND}\n");
    assert_eq!((ended.code, ended.stdout), (Some(0), expected), "{}", ended.stderr);
    let ended = run(&gateway(), &["logs", "-f", FIRST, SECOND]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
}

#[test]
fn documents_are_also_printed_as_yaml() {
    let ended = run(&gateway(), &["status", FIRST, SECOND, "-o", "yaml"]);
    let documents: Vec<&str> = ended.stdout.split("---\n").collect();
    assert_eq!((ended.code, documents.len()), (Some(0), 2), "{}", ended.stdout);
    assert!(
        documents[0].contains(&format!("id: {FIRST}\n")) && documents[1].contains("state: FAILED\n"),
        "{}",
        ended.stdout
    );
    let ended = run(&gateway(), &["manifest", FIRST, SECOND]);
    assert_eq!(ended.stdout.matches("kind: List\n").count(), 2);
    let list = Played::new(|_| json_answer(200, &json!({"items": [{"id": "driver-1", "labels": {"a": "1"}}]})));
    let ended = run(&list, &["list", "-o", "yaml"]);
    assert_eq!(ended.stdout, "items:\n- id: driver-1\n  labels:\n    a: \"1\"\n");
    let expected: Value = json!({"items": [{"id": "driver-1", "labels": {"a": "1"}}]});
    assert_eq!(serde_json::from_str::<Value>(&run(&list, &["list", "-o", "json"]).stdout).unwrap(), expected);
}
