//! `sparkgate webhook`.

use serde_json::{Value, json};

use crate::cli::{
    played::{Played, Reply, json_answer, problem},
    user::User,
};

const FIRST: &str = "wh_6f1c2a9b03d4e5f6";
const SECOND: &str = "wh_6f2c2a9b03d4e5f6";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn webhook(id: &str) -> Value {
    json!({"id": id, "tenant": "analytics", "createdBy": "corp:alice", "url": "https://hooks.example.org/spark",
        "format": "cloudevents", "submissions": "tenant", "createdAt": "2026-01-02T03:04:05Z",
        "filter": {"states": ["FAILED"], "labels": {"team": "data"}}})
}

fn with_secret(id: &str) -> Value {
    let mut webhook = webhook(id);
    webhook["secret"] = SECRET.into();
    webhook["previousSecretUntil"] = "2126-01-02T03:04:05Z".into();
    webhook
}

fn deliveries(count: usize, next: Option<&str>) -> Value {
    let one = |id: usize| {
        json!({"id": id.to_string(), "submissionId": "driver-20260102030405-0001", "sequence": id, "attempt": 1,
        "state": "FAILED", "status": "dead", "tries": 40, "queuedAt": "2026-01-02T03:04:05Z",
        "endedAt": "2026-01-03T03:04:05Z", "httpStatus": 500, "error": "the receiver answered 500"})
    };
    let mut page = json!({"items": (1..=count).map(one).collect::<Vec<_>>()});
    if let Some(next) = next {
        page["next"] = next.into();
    }
    page
}

/// A gateway with two webhooks, the first of which has deliveries.
fn gateway() -> Played {
    Played::new(|asked| {
        let Some((method, path)) = asked.what.split_once(" /v1/webhooks") else { panic!("{}", asked.what) };
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        match (method, segments.as_slice()) {
            ("POST", []) => json_answer(201, &with_secret(FIRST)),
            ("GET", []) => json_answer(200, &json!({"items": [webhook(SECOND), webhook(FIRST)]})),
            (_, [id, ..]) if ![FIRST, SECOND].contains(id) => {
                problem(404, "webhook-not-found", "There is no such webhook", "There is none.")
            }
            ("GET", [id]) => json_answer(200, &webhook(id)),
            ("DELETE", [_]) => Reply::Answer { status: 204, headers: Vec::new(), body: String::new() },
            ("POST", [id, "rotate"]) => json_answer(200, &with_secret(id)),
            ("GET", [_, "deliveries"]) if asked.query.contains("cursor=next") => json_answer(200, &deliveries(1, None)),
            ("GET", [_, "deliveries"]) => json_answer(200, &deliveries(2, Some("next"))),
            ("POST", [_, "replay"]) => json_answer(202, &json!({"deliveries": 3})),
            ("POST", [_, "deliveries", "7", "replay"]) => {
                problem(404, "delivery-not-found", "There is no such delivery", "There is none.")
            }
            ("POST", [_, "deliveries", _, "replay"]) => json_answer(202, &json!({"deliveries": 1})),
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn the_secret_of_a_new_webhook_is_alone_on_standard_output() {
    let gateway = gateway();
    let user = User::with_context("own", &gateway.url());
    let url = "https://hooks.example.org/spark";
    let ended = user.run(&["webhook", "create", url]);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{SECRET}\n")), "{}", ended.stderr);
    assert_eq!(
        ended.stderr,
        format!("created the webhook {FIRST} for all submissions in analytics. Its secret can't be shown again\n")
    );
    assert_eq!(gateway.asked()[0].json(), json!({"url": url, "filter": {"states": [], "labels": {}}}));

    let token = user.write("token", "t0ken\n", 0o600);
    let words = ["--tenant", "analytics", "--own", "--format", "openlineage", "--state", "FINISHED,FAILED"];
    let more = ["--name", "etl-", "--owner", "alice", "-n", "spark", "-l", "team=data", "-o", "json"];
    let token = ["--bearer-token-file", token.to_str().unwrap()];
    let ended = user.run(&[&["webhook", "create", url][..], &words, &more, &token].concat());
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), with_secret(FIRST), "{}", ended.stderr);
    let filter = json!({"states": ["FINISHED", "FAILED"], "name": "etl-", "owner": "alice", "namespace": "spark",
        "labels": {"team": "data"}});
    let body = json!({"url": url, "tenant": "analytics", "submissions": "own", "format": "openlineage", "filter": filter,
        "bearerToken": "t0ken"});
    assert_eq!(gateway.asked()[1].json(), body);
}

#[test]
fn a_secret_of_the_user_is_read_from_a_private_file_and_not_printed() {
    let gateway = gateway();
    let user = User::with_context("own", &gateway.url());
    let file = user.write("secret", &format!("{SECRET}\n"), 0o600);
    let words = ["webhook", "create", "https://hooks.example.org/", "--secret-file", file.to_str().unwrap()];
    let ended = user.run(&words);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{FIRST}\n")), "{}", ended.stderr);
    assert!(!ended.stderr.contains(SECRET));
    assert_eq!(gateway.asked()[0].json()["secret"], SECRET);
    user.write("secret", SECRET, 0o644);
    let ended = user.run(&words);
    assert!(ended.code == Some(1) && ended.stderr.contains("run `chmod 600"), "{}", ended.stderr);
    user.write("secret", "\n", 0o600);
    assert!(user.run(&words).stderr.contains("it is empty"));
    // Standard input of these tests is empty, too.
    let ended = user.run(&["webhook", "create", "https://hooks.example.org/", "--bearer-token-file", "-"]);
    assert!(ended.stderr.contains("reading the bearer token from standard input: it is empty"), "{}", ended.stderr);
    assert_eq!(gateway.asked().len(), 1);
}

#[test]
fn a_webhook_is_not_created_or_rotated_twice() {
    let gateway = Played::new(|_| Reply::HangUp);
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&["webhook", "create", "https://hooks.example.org/"]);
    assert_eq!((ended.code, gateway.asked().len()), (Some(1), 1));
    assert!(ended.stderr.contains("may exist nevertheless: see `sparkgate webhook list`"), "{}", ended.stderr);
    let ended = user.run(&["webhook", "rotate", FIRST]);
    assert_eq!((ended.code, gateway.asked().len()), (Some(1), 2));
    assert!(ended.stderr.contains("may be replaced nevertheless"), "{}", ended.stderr);
}

#[test]
fn webhooks_are_listed_in_each_format() {
    let gateway = gateway();
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&["webhook", "list"]);
    assert!(ended.stdout.starts_with("ID                   TENANT     SUBMISSIONS  FORMAT"), "{}", ended.stdout);
    assert!(ended.stdout.contains("FAILED team=data") && !ended.stdout.contains("corp:alice"), "{}", ended.stdout);
    let ended = user.run(&["webhook", "list", "-o", "wide"]);
    assert!(ended.stdout.contains("CREATED BY") && ended.stdout.contains("corp:alice"), "{}", ended.stdout);
    assert_eq!(user.run(&["webhook", "list", "-o", "name"]).stdout, format!("{SECOND}\n{FIRST}\n"));
    let json = user.run(&["webhook", "list", "-o", "json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), json!({"items": [webhook(SECOND), webhook(FIRST)]}));
    assert!(user.run(&["webhook", "list", "-o", "yaml"]).stdout.starts_with("items:\n- "));
    let submission = "driver-20260102030405-0001";
    assert_eq!(user.run(&["webhook", "list", "--submission", submission]).code, Some(0));
    assert_eq!(gateway.asked().last().unwrap().query, format!("submission={submission}"));
}

#[test]
fn webhooks_are_named_by_the_beginning_of_their_ids() {
    let gateway = gateway();
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&["webhook", "show", "6f1", SECOND]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ids: Vec<_> = ended.stdout.lines().filter(|line| line.starts_with("ID:")).collect();
    assert_eq!(ids, [format!("ID:          {FIRST}"), format!("ID:          {SECOND}")]);
    assert!(ended.stdout.contains("\n\nID:"), "an empty line is between them: {}", ended.stdout);
    let ended = user.run(&["webhook", "rm", "wh_6f"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains(&format!("wh_6f is the beginning of 2 ids: {SECOND}, {FIRST}")), "{}", ended.stderr);
    let ended = user.run(&["webhook", "show", "7"]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(gateway.asked().iter().all(|asked| !asked.what.starts_with("DELETE")));
}

#[test]
fn each_webhook_is_deleted_even_if_one_is_unknown() {
    let gateway = gateway();
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&["webhook", "rm", "wh_0000000000000000", FIRST]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(4), ""));
    assert!(ended.stderr.contains("error: wh_0000000000000000: There is no such webhook"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with(&format!("the webhook {FIRST} is deleted\n")), "{}", ended.stderr);
    assert_eq!(user.run(&["webhook", "delete", FIRST]).code, Some(0));
}

#[test]
fn a_new_secret_is_alone_on_standard_output() {
    let gateway = gateway();
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&["webhook", "rotate", "6f1"]);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{SECRET}\n")));
    assert!(ended.stderr.contains("until 2126-01-02T03:04:05Z, messages are signed with the old one, too"));
    assert_eq!(gateway.asked().last().unwrap().what, format!("POST /v1/webhooks/{FIRST}/rotate"));
}

#[test]
fn deliveries_are_listed_to_the_limit_or_all() {
    let gateway = gateway();
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&["webhook", "deliveries", FIRST, "--status", "dead"]);
    assert!(ended.stdout.starts_with("ID  STATUS  SUBMISSION"), "{}", ended.stdout);
    assert_eq!(
        (ended.stdout.lines().count(), ended.stderr.as_str()),
        (3, "there are more: use --all or a larger --limit\n")
    );
    assert_eq!(gateway.asked()[0].query, "limit=50&status=dead");
    let all = user.run(&["webhook", "deliveries", FIRST, "--all", "-o", "name"]);
    assert_eq!((all.stdout.as_str(), all.stderr.as_str()), ("1\n2\n1\n", ""));
    let json = user.run(&["webhook", "deliveries", FIRST, "-o", "json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), deliveries(2, Some("next")));
    assert!(user.run(&["webhook", "deliveries", FIRST, "-o", "wide"]).stdout.contains("2026-01-03T03:04:05Z"));
    assert_eq!(user.run(&["webhook", "deliveries", "wh_0000000000000000"]).code, Some(4));
}

#[test]
fn deliveries_are_replayed_together_or_one_by_one() {
    let gateway = gateway();
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&["webhook", "replay", FIRST]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "3 deliveries are queued again\n"));
    assert_eq!(gateway.asked()[0].what, format!("POST /v1/webhooks/{FIRST}/replay"));
    let ended = user.run(&["webhook", "replay", FIRST, "7", "8"]);
    assert_eq!(ended.code, Some(4));
    assert!(ended.stderr.contains("error: 7: There is no such delivery"), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("one delivery is queued again\n"), "{}", ended.stderr);
}
