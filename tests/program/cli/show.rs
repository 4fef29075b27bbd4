//! Commands that show parts of a submission, `@latest`, and several ids.

use serde_json::json;

use crate::cli::{
    played::{Asked, Played, Reply, json_answer, problem, submission},
    run::run,
};

const ID: &str = "driver-20260102030405-0001";
const OTHER: &str = "driver-20260102030405-0002";

/// A gateway whose newest submission is `ID`.
fn gateway() -> Played {
    Played::new(|asked| {
        let path = asked.what.strip_prefix("GET /v1/submissions").unwrap_or_else(|| panic!("{}", asked.what));
        let executor = json!({"id": 1, "attempt": 1, "state": "FAILED", "pod": "pi-exec-1", "node": "n-1", "exitCode": 137,
            "reason": "OOMKilled", "startedAt": "2026-01-02T03:04:05Z", "finishedAt": "2026-01-02T03:05:05Z"});
        let attempt = json!({"attempt": 1, "state": "FAILED", "queuedAt": "2026-01-02T03:04:05Z",
            "startedAt": "2026-01-02T03:04:06Z", "finishedAt": "2026-01-02T03:04:16Z",
            "failure": {"code": "evicted", "class": "infrastructure", "message": "the node was low on memory"}});
        match path.replace(ID, "ID").as_str() {
            "" => json_answer(200, &json!({"items": [submission(ID, "RUNNING")], "next": "c"})),
            "/ID/executors" => executors(asked, &executor),
            "/ID/attempts" => json_answer(200, &json!({"items": [attempt]})),
            "/ID/manifest" => json_answer(200, &json!({"kind": "List", "items": [{"kind": "Pod"}]})),
            "/ID" => json_answer(200, &submission(ID, "RUNNING")),
            path if path.ends_with(OTHER) => json_answer(200, &submission(OTHER, "FINISHED")),
            _ => problem(404, "submission-not-found", "There is no such submission", "There is none."),
        }
    })
}

fn executors(asked: &Asked, executor: &serde_json::Value) -> Reply {
    let second = json!({"id": 2, "attempt": 1, "state": "RUNNING", "pod": "pi-exec-2"});
    match asked.query.as_str() {
        "" => json_answer(200, &json!({"items": [executor], "next": "more"})),
        "cursor=more" => json_answer(200, &json!({"items": [second]})),
        other => panic!("{other}"),
    }
}

#[test]
fn executors_are_listed_on_all_pages() {
    for id in [ID, "@latest"] {
        let ended = run(&gateway(), &["executors", id]);
        let expected = "ID  ATTEMPT  STATE    EXIT  DURATION  REASON     POD        NODE\n\
                        1   1        FAILED   137   1m        OOMKilled  pi-exec-1  n-1\n\
                        2   1        RUNNING                             pi-exec-2\n";
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), expected), "{}", ended.stderr);
    }
    let ended = run(&gateway(), &["executors", ID, "-o", "json"]);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["items"][1]["pod"], "pi-exec-2");
}

#[test]
fn attempts_say_why_they_failed() {
    let ended = run(&gateway(), &["attempts", "@latest"]);
    let expected =
        "ATTEMPT  STATE   DURATION  FAILURE\n1        FAILED  10s       evicted: the node was low on memory\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), expected), "{}", ended.stderr);
}

#[test]
fn the_manifest_is_yaml_or_json() {
    let gateway = gateway();
    let ended = run(&gateway, &["manifest", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "items:\n- kind: Pod\nkind: List\n"), "{}", ended.stderr);
    let ended = run(&gateway, &["manifest", ID, "-o", "json", "--attempt", "2"]);
    assert_eq!(ended.stdout, "{\"items\":[{\"kind\":\"Pod\"}],\"kind\":\"List\"}\n");
    assert_eq!(gateway.asked().last().unwrap().query, "attempt=2");
}

#[test]
fn status_shows_several_submissions() {
    let ended = run(&gateway(), &["status", OTHER, "@latest"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.find(OTHER).unwrap() < ended.stdout.find(ID).unwrap(), "{}", ended.stdout);
    assert_eq!(run(&gateway(), &["status", ID, "driver-20260102030405-0009"]).code, Some(4));
}

#[test]
fn the_newest_submission_has_to_exist() {
    let empty = Played::new(|_| json_answer(200, &json!({"items": []})));
    let ended = run(&empty, &["status", "@latest"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), "error: @latest: there is no submission\n"));
    let ended = run(&empty, &["status", "@newest"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}
