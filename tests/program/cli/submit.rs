//! `sparkgate submit`.

use serde_json::json;

use crate::cli::{
    played::{Played, Reply, json_answer, problem, submission},
    run::run,
};

const ID: &str = "driver-20260102030405-0001";
const CREATE: &str = "POST /v1/submissions";

#[test]
fn a_submit_is_retried_with_the_same_key() {
    let gateway = Played::new(|asked| match asked.before {
        0 => problem(503, "unavailable", "Unavailable", "Postgres is away."),
        1 => Reply::HangUp,
        // Without a Retry-After: it may have been accepted, and the key makes the retry safe.
        2 => json_answer(503, &json!({"title": "In doubt", "code": "in-doubt", "status": 503})),
        _ => json_answer(201, &submission(ID, "QUEUED")),
    });
    let ended = run(&gateway, &["submit", "--class", "a.B", "--label", "team=data", "local:///app.jar", "--wait"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), format!("{ID}\n").as_str()), "{}", ended.stderr);
    let asked = gateway.asked();
    assert_eq!(asked.len(), 4);
    let key = &asked[0].headers["idempotency-key"];
    assert!(uuid::Uuid::parse_str(key).is_ok(), "{key}");
    for again in &asked {
        assert_eq!(
            (again.what.as_str(), &again.headers["idempotency-key"], &again.body),
            (CREATE, key, &asked[0].body)
        );
    }
    let body = asked[0].json();
    assert_eq!(body["appArgs"], json!(["--class", "a.B", "local:///app.jar", "--wait"]));
    assert_eq!(
        (&body["labels"], &body["environmentVariables"]["SPARK_USER"]),
        (&json!({"team": "data"}), &json!("alice"))
    );
}

#[test]
fn two_submissions_have_two_keys_unless_one_is_given() {
    let gateway = Played::new(|_| json_answer(201, &submission(ID, "QUEUED")));
    for words in [
        &["submit", "local:///a.py"][..],
        &["submit", "local:///a.py"],
        &["submit", "--idempotency-key", "daily 7", "local:///a.py"],
    ] {
        assert_eq!(run(&gateway, words).code, Some(0));
    }
    let keys: Vec<String> = gateway.asked().iter().map(|asked| asked.headers["idempotency-key"].clone()).collect();
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[2], "daily 7");
}

#[test]
fn a_refusal_names_the_options_and_is_not_retried() {
    let gateway = Played::new(|_| {
        let errors = json!([{"pointer": "#/appArgs/2", "detail": "Executor memory must be a positive number"}]);
        let body = json!({"title": "Invalid request", "detail": "It can't be run.", "code": "invalid-request",
            "status": 400, "requestId": "request-1", "errors": errors});
        json_answer(400, &body)
    });
    let ended = run(&gateway, &["submit", "--name", "Pi", "--executor-memory", "much", "local:///a.py"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        ended.stderr,
        "error: Invalid request: It can't be run.\n  `--executor-memory`: Executor memory must be a positive number\n  \
         request id: request-1\n"
    );
    assert_eq!(gateway.asked().len(), 1);
}

#[test]
fn a_replay_is_noted() {
    let gateway = Played::new(|_| {
        let headers = vec![("idempotency-replayed", "true".to_owned())];
        Reply::Answer { status: 200, headers, body: submission(ID, "RUNNING").to_string() }
    });
    let ended = run(&gateway, &["submit", "--idempotency-key", "k", "local:///a.py"]);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{ID}\n")));
    assert!(ended.stderr.contains("this key was used before"), "{}", ended.stderr);
}

#[test]
fn a_dry_run_prints_the_manifest_and_lists_the_defaults() {
    let manifest = r#"{"kind": "List",  "items": []}"#;
    let body = format!(
        r#"{{"submission": {{}}, "manifest": {manifest}, "defaults": [{{"key": "spark.driver.memory", "value": "1g", "origin": "Spark"}}]}}"#
    );
    let gateway = Played::new(move |_| Reply::Answer { status: 200, headers: Vec::new(), body: body.clone() });
    let ended = run(&gateway, &["submit", "--dry-run", "local:///a.py"]);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{manifest}\n")));
    assert_eq!(ended.stderr, "default: spark.driver.memory=1g (Spark)\n");
    let asked = gateway.asked().remove(0);
    assert_eq!((asked.what.as_str(), asked.query.as_str()), (CREATE, "dryRun=true"));
}

#[test]
fn warnings_about_properties_are_printed() {
    let warnings = r#""warnings": ["spark.x: did you mean y?"]"#;
    let created = format!(r#"{{"id": "{ID}", "state": "QUEUED", {warnings}}}"#);
    let planned = format!(r#"{{"submission": {{}}, "manifest": {{}}, {warnings}}}"#);
    for (words, body) in
        [(&["submit", "local:///a.py"][..], created), (&["submit", "--dry-run", "local:///a.py"], planned)]
    {
        let gateway = Played::new(move |_| Reply::Answer { status: 201, headers: Vec::new(), body: body.clone() });
        let ended = run(&gateway, words);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "warning: spark.x: did you mean y?\n"), "{words:?}");
    }
}

#[test]
fn a_wrong_command_line_is_reported_without_a_gateway() {
    let gateway = Played::new(|_| Reply::HangUp);
    for (words, part) in [
        (&["submit", "--class", "a.B"][..], "APP"),
        (&["submit", "--executor-memry", "1g", "local:///a.py"], "'--executor-memory'"),
        (&["submit", "--kill", ID], "sparkgate kill ID"),
        (&["submit", "--start-timeout", "soon", "local:///a.py"], "90s, 10m, 1h30m"),
        (&["submit", "--label", "data", "local:///a.py"], "KEY=VALUE"),
        (&["status", "pi"], "driver-20260102030405-0001"),
        (&["list", "--server", "ftp://x"], "http://host:port"),
    ] {
        let ended = run(&gateway, words);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    assert!(gateway.asked().is_empty());
}
