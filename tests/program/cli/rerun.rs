//! `sparkgate rerun`.

use std::io::Write;

use serde_json::json;

use crate::cli::{
    played::{Played, Reply, json_answer, submission},
    run::{Ended, command, run},
};

const ID: &str = "driver-20260102030405-0001";
const NEW: &str = "driver-20260102030405-0002";

fn gateway() -> Played {
    Played::new(|asked| match asked.what.as_str() {
        "POST /v1/submissions/driver-20260102030405-0001/rerun" => json_answer(201, &submission(NEW, "QUEUED")),
        _ => json_answer(200, &submission(NEW, "FINISHED")),
    })
}

#[test]
fn a_rerun_sends_a_merge_patch_and_prints_the_new_id() {
    let gateway = gateway();
    let words = [
        "rerun",
        ID,
        "--set",
        "labels.team=5",
        "--unset",
        "name",
        "--conf",
        "spark.a=b",
        "--run-timeout",
        "1m",
        "--",
        "x",
    ];
    let done = run(&gateway, &words);
    assert_eq!((done.code, done.stdout), (Some(0), format!("{NEW}\n")), "{}", done.stderr);
    let asked = gateway.asked().remove(0);
    assert_eq!(
        asked.json(),
        json!({"labels": {"team": "5"}, "name": null, "sparkProperties": {"spark.a": "b"}, "runTimeoutSeconds": 60, "appArgs": ["x"]})
    );
    assert!(uuid::Uuid::parse_str(&asked.headers["idempotency-key"]).is_ok());
    let done = run(&gateway, &["rerun", "--watch", ID]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(gateway.asked()[1].body, "{}", "the same again");
    assert!(done.stderr.contains("FINISHED"), "{}", done.stderr);
}

#[test]
fn a_patch_comes_from_standard_input_too() {
    let gateway = gateway();
    let mut words = command(&gateway.url(), &["rerun", ID, "--patch", "-", "--idempotency-key", "k"]);
    let piped = || std::process::Stdio::piped();
    let mut child = words.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"labels:\n  team: null\nmaxRetries: {application: 1}\n").unwrap();
    let done = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let asked = gateway.asked().remove(0);
    assert_eq!(asked.json(), json!({"labels": {"team": null}, "maxRetries": {"application": 1}}));
    assert_eq!(asked.headers["idempotency-key"], "k");
}

#[test]
fn values_that_were_not_stored_are_asked_for() {
    let gateway = Played::new(|_| {
        let detail = "the value was not stored, because it looks like a secret: set it in the patch, or to null";
        let body = json!({"title": "The request can't be run as it is", "status": 400, "code": "invalid-request", "detail": "x",
            "errors": [{"pointer": "#/sparkProperties/spark.my.password", "detail": detail}]});
        Reply::Answer { status: 400, headers: Vec::new(), body: body.to_string() }
    });
    let done = run(&gateway, &["rerun", ID]);
    assert_eq!(done.code, Some(1));
    for part in ["  sparkProperties.spark.my.password: the value was not stored", "--set PATH=VALUE", "--unset PATH"] {
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
}

#[test]
fn only_one_rerun_is_followed() {
    let gateway = gateway();
    let done = run(&gateway, &["rerun", "-f", ID, NEW]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{}", done.stderr);
    assert!(gateway.asked().is_empty());
    assert_eq!(run(&gateway, &["rerun", ID, "--set", "name"]).code, Some(2));
}
