//! `sparkgate kill`.

use serde_json::json;

use crate::cli::{
    played::{Played, json_answer, problem, submission},
    run::run,
};

const IDS: [&str; 3] = ["driver-20260102030405-0001", "driver-20260102030405-0002", "driver-20260102030405-0003"];

fn gateway() -> Played {
    Played::new(|asked| {
        let id = asked.what.rsplit('/').find(|part| part.starts_with("driver-")).unwrap();
        match asked.what.split(' ').next().unwrap() {
            _ if id == IDS[1] => problem(404, "submission-not-found", "Submission not found", "There is none."),
            "DELETE" => json_answer(202, &submission(id, "KILLING")),
            _ if asked.what.ends_with("/wait") => json_answer(200, &submission(id, "KILLED")),
            _ if asked.before == 0 => json_answer(200, &submission(id, "KILLING")),
            _ => json_answer(200, &submission(id, "KILLED")),
        }
    })
}

#[test]
fn a_failed_kill_does_not_stop_the_others() {
    let ended = run(&gateway(), &["kill", IDS[0], IDS[1], IDS[2]]);
    assert_eq!(ended.code, Some(4));
    assert_eq!(ended.stdout, format!("{} KILLING\n{} KILLING\n", IDS[0], IDS[2]));
    assert!(ended.stderr.starts_with(&format!("error: {}: Submission not found", IDS[1])), "{}", ended.stderr);
}

#[test]
fn kill_with_wait_returns_when_all_have_ended() {
    let ended = run(&gateway(), &["kill", "--wait", IDS[0], IDS[2]]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, format!("{} KILLED\n{} KILLED\n", IDS[0], IDS[2]));
}

/// A gateway with two live submissions that have the label, on two pages.
fn labelled() -> Played {
    Played::new(|asked| match (asked.what.as_str(), asked.query.contains("cursor=c")) {
        ("GET /v1/submissions", false) => {
            json_answer(200, &json!({"items": [submission(IDS[0], "RUNNING")], "next": "c"}))
        }
        ("GET /v1/submissions", true) => json_answer(200, &json!({"items": [submission(IDS[2], "QUEUED")]})),
        (what, _) => json_answer(202, &submission(what.rsplit('/').next().unwrap(), "KILLING")),
    })
}

#[test]
fn a_kill_by_label_needs_a_yes() {
    let gateway = labelled();
    let ended = run(&gateway, &["kill", "--label", "team=data"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("kill these 2 submissions?") && ended.stderr.contains("--yes"), "{}", ended.stderr);
    assert!(gateway.asked().iter().all(|asked| asked.what == "GET /v1/submissions"), "nothing was killed");
    assert!(gateway.asked()[0].query.ends_with("state=KILLING&label=team%3Ddata"), "{}", gateway.asked()[0].query);
    let ended = run(&gateway, &["kill", "-l", "team=data", "-y"]);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{} KILLING\n{} KILLING\n", IDS[0], IDS[2])));
}

#[test]
fn a_kill_has_ids_or_a_label() {
    for words in [&["kill"][..], &["kill", IDS[0], "--label", "a=b"]] {
        assert_eq!(run(&labelled(), words).code, Some(2), "{words:?}");
    }
}
