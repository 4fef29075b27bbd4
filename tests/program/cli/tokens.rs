//! Which token a request carries, and `sparkgate token` and `whoami`.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{
    played::{Asked, Played, Reply, json_answer, problem, submission},
    user::User,
};

const ID: &str = "driver-20260102030405-0001";

fn gateway() -> Played {
    Played::new(|_| json_answer(200, &submission(ID, "RUNNING")))
}

fn token(asked: &Asked) -> Option<&str> {
    asked.headers.get("authorization").map(String::as_str)
}

#[test]
fn a_token_file_precedes_the_variable_and_its_mode_is_checked() {
    let (gateway, user) = (gateway(), User::new());
    let url = gateway.url();
    let file = user.write("token", "s3cret\n", 0o600);
    let file = file.to_str().unwrap();
    let words = ["status", ID, "--server", &url, "--token-file", file];
    assert_eq!(user.run_with(&words, &[("SPARKGATE_TOKEN", "other")]).code, Some(0));
    assert_eq!(token(&gateway.asked()[0]), Some("Bearer s3cret"));
    // Of the environment, the token precedes the file.
    let variables = [("SPARKGATE_TOKEN", "other"), ("SPARKGATE_TOKEN_FILE", file)];
    assert_eq!(user.run_with(&words[..4], &variables).code, Some(0));
    assert_eq!(user.run_with(&words[..4], &variables[1..]).code, Some(0));
    let tokens: Vec<_> = gateway.asked()[1..].iter().map(|asked| token(asked).unwrap().to_owned()).collect();
    assert_eq!(tokens, ["Bearer other", "Bearer s3cret"]);

    user.write("token", "s3cret\n", 0o644);
    let ended = user.run(&words);
    assert_eq!((ended.code, gateway.asked().len()), (Some(1), 3));
    assert!(ended.stderr.contains(&format!("run `chmod 600 {file}`")), "{}", ended.stderr);
    user.write("token", " \n", 0o600);
    assert!(user.run(&words).stderr.contains("it is empty"));
    fs::remove_file(file).unwrap();
    assert!(user.run(&words).stderr.contains("No such file"));
    user.write("token", "two words\nand lines", 0o600);
    let ended = user.run(&words);
    assert!(ended.stderr.contains("characters that no token has") && !ended.stderr.contains("two"), "{}", ended.stderr);
}

#[test]
fn a_token_file_is_read_again_for_each_request() {
    let user = User::new();
    let file = user.write("token", "first", 0o600);
    let path = file.clone();
    let gateway = Played::new(move |asked| match asked.before {
        0 => {
            fs::write(&path, "second").unwrap();
            Reply::HangUp
        }
        _ => json_answer(200, &submission(ID, "RUNNING")),
    });
    let words = ["status", ID, "--server", &gateway.url(), "--token-file", file.to_str().unwrap()];
    assert_eq!(user.run(&words).code, Some(0));
    let tokens: Vec<_> = gateway.asked().iter().map(|asked| token(asked).unwrap().to_owned()).collect();
    assert_eq!(tokens, ["Bearer first", "Bearer second"]);
}

#[test]
fn no_token_of_any_source_is_sent_over_plain_http() {
    let (proxy, user) = (gateway(), User::new());
    let url = "http://gateway.example:6066";
    user.write_config(&format!("contexts:\n  own: {{server: '{url}', token: s3cret}}\n"));
    let file = user.write("token", "s3cret", 0o600);
    for words in [
        &["status", ID, "--context", "own"][..],
        &["status", ID, "--server", url, "--token-file", file.to_str().unwrap()],
        &["status", ID, "--server", url, "--token", "s3cret"],
    ] {
        let ended = user.run_with(words, &[("HTTP_PROXY", &proxy.url())]);
        assert_eq!((ended.code, proxy.asked().len()), (Some(1), 0));
        assert!(ended.stderr.contains("use an https URL") && !ended.stderr.contains("s3cret"), "{}", ended.stderr);
    }
}

#[test]
fn a_refused_token_is_named_by_its_source() {
    let gateway = Played::new(|_| problem(401, "unauthenticated", "Unauthenticated", "The token is unknown."));
    let user = User::new();
    let url = gateway.url();
    user.write_config(&format!("contexts:\n  own: {{server: '{url}', token: s3cret}}\n"));
    let file = user.write("token", "s3cret", 0o600);
    let file = file.to_str().unwrap();
    for (options, variables, part) in [
        (
            &["--server", &url][..],
            &[][..],
            "no token was sent: run `sparkgate login`, or set SPARKGATE_TOKEN".to_owned(),
        ),
        (&["--server", &url], &[("SPARKGATE_TOKEN", "s3cret")], "the token is from SPARKGATE_TOKEN".to_owned()),
        (&["--server", &url, "--token", "s3cret"], &[], "the token is from --token".to_owned()),
        (&["--server", &url, "--token-file", file], &[], format!("the token is from the file {file}")),
        (&["--context", "own"], &[], "the token is from the context `own`".to_owned()),
    ] {
        let ended = user.run_with(&[&["status", ID], options].concat(), variables);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
        for part in
            ["error: Unauthenticated: The token is unknown.", &part, "`sparkgate login`", "request id: request-1"]
        {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
    }
    assert_eq!(gateway.asked().len(), 5, "it is not retried");
}

#[test]
fn the_token_of_dev_is_sent_to_its_gateway_unless_there_is_another() {
    let (gateway, user) = (gateway(), User::new());
    let url = gateway.url();
    let words = ["status", ID, "--server", &url];
    let sent = |variables: &[(&str, &str)]| {
        let ended = user.run_with(&words, variables);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        token(&gateway.asked().pop().unwrap()).map(str::to_owned)
    };
    assert_eq!(sent(&[]), None);
    user.write("dev/token", &format!("{url} s3cret\n"), 0o600);
    assert_eq!(sent(&[]).as_deref(), Some("Bearer s3cret"));
    assert_eq!(sent(&[("SPARKGATE_TOKEN", "mine")]).as_deref(), Some("Bearer mine"));
    user.write("dev/token", &format!("{url} s3cret\n"), 0o644);
    assert_eq!(sent(&[]), None, "another user can read it");
    user.write("dev/token", "http://127.0.0.1:1 s3cret\n", 0o600);
    assert_eq!(sent(&[]), None, "another gateway's");
}

fn created() -> Value {
    json!({"id": "t1", "name": "airflow", "tenant": "analytics", "role": "submitter", "createdBy": "corp:alice",
        "createdAt": "2026-01-02T03:04:05Z", "expiresAt": "2026-04-02T03:04:05Z", "token": "sg_t1_s3cret"})
}

const CREATE: [&str; 8] = ["token", "create", "--name", "airflow", "--tenant", "analytics", "--role", "submitter"];

#[test]
fn a_created_token_is_alone_on_standard_output() {
    let gateway = Played::new(|_| json_answer(201, &created()));
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&[&CREATE[..], &["--expires", "90d"]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "sg_t1_s3cret\n"), "{}", ended.stderr);
    assert_eq!(
        ended.stderr,
        "created the token `airflow` (id t1) with the role submitter in analytics; it ends at 2026-04-02T03:04:05Z. It \
         can't be shown again\n"
    );
    let asked = gateway.asked().remove(0);
    let body = json!({"name": "airflow", "tenant": "analytics", "role": "submitter", "expiresInSeconds": 7_776_000});
    assert_eq!((asked.what.as_str(), asked.json()), ("POST /v1/tokens", body));
    let ended = user.run(&[&CREATE[..], &["-o", "json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), created());
    assert!(gateway.asked()[1].json().get("expiresInSeconds").is_none());
}

#[test]
fn a_token_is_not_created_twice() {
    let gateway = Played::new(|_| Reply::HangUp);
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&CREATE);
    assert_eq!((ended.code, ended.stdout.as_str(), gateway.asked().len()), (Some(1), "", 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("sparkgate token list"), "{}", ended.stderr);
}

#[test]
fn tokens_are_listed_and_revoked() {
    let gateway = Played::new(|asked| match asked.what.as_str() {
        "GET /v1/tokens" => json_answer(200, &json!({"tokens": [created()]})),
        "DELETE /v1/tokens/t1" => Reply::Answer { status: 204, headers: Vec::new(), body: String::new() },
        _ => problem(404, "token-not-found", "Token not found", "There is none."),
    });
    let user = User::with_context("own", &gateway.url());
    let ended = user.run(&["token", "list"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("ID  NAME     TENANT     ROLE       CREATED BY"), "{}", ended.stdout);
    assert!(ended.stdout.contains("airflow") && !ended.stdout.contains("s3cret"), "{}", ended.stdout);
    let ended = user.run(&["token", "revoke", "t1"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "the token t1 is revoked\n"));
    assert_eq!(user.run(&["token", "revoke", "t2"]).code, Some(4));
}

#[test]
fn whoami_prints_the_subject_its_tenants_and_the_tokens_source() {
    let body = json!({"subject": "corp:alice", "groups": ["data"], "expiresAt": "2026-01-02T03:04:05Z",
        "tenants": [{"name": "analytics", "role": "submitter", "namespaces": ["spark-a"]}]});
    let me = body.clone();
    let gateway = Played::new(move |asked| match asked.what.as_str() {
        "GET /v1/me" => json_answer(200, &me),
        other => panic!("{other}"),
    });
    let user = User::with_context("own", &gateway.url());
    let ended = user.run_with(&["whoami"], &[("SPARKGATE_TOKEN", "s3cret")]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    for part in ["corp:alice\n", "from SPARKGATE_TOKEN\n", "2026-01-02T03:04:05Z (", "analytics  submitter  spark-a\n"]
    {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let ended = user.run(&["whoami", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), body);
}
