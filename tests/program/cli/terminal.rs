//! What a gateway sends doesn't control the terminal.

use std::{
    fs::File,
    io::Read,
    process::{Command, Stdio},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use serde_json::{Value, json};

use crate::cli::{
    played::{Played, Reply, json_answer},
    run::command,
};

const ID: &str = "driver-20260102030405-0001";
/// A window title, a cleared screen, an escape of one character (C1), reversed text, and a line that is overwritten.
const HOSTILE: &str = "a\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}2J\u{202e}b\rc";

/// Runs a command whose standard output and error are a terminal. Returns what the terminal receives.
pub(crate) fn in_terminal(command: &mut Command) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let stderr = terminal.try_clone().unwrap();
    let mut child =
        command.env("TERM", "xterm").stdout(Stdio::from(terminal)).stderr(Stdio::from(stderr)).spawn().unwrap();
    // The command keeps copies of the terminal, which would otherwise never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut controller = File::from(controller);
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    // A terminal whose last user has left ends with an error (EIO).
    while let Ok(length @ 1..) = controller.read(&mut piece) {
        received.extend_from_slice(&piece[..length]);
    }
    child.wait().unwrap();
    String::from_utf8(received).unwrap()
}

/// Returns the text without the client's own colours.
fn without_colours(text: &str) -> String {
    let mut text = text.replace("\u{1b}[0m", "");
    for colour in 30..38 {
        text = text.replace(&format!("\u{1b}[{colour}m"), "");
    }
    text
}

/// Replaces all texts of a document by one.
fn hostile(value: &mut Value) {
    match value {
        // Dates and states have to be read.
        Value::String(text) if text.starts_with("2026") || text.chars().all(|c| c.is_ascii_uppercase()) => {}
        Value::String(text) => HOSTILE.clone_into(text),
        Value::Array(values) => values.iter_mut().for_each(hostile),
        Value::Object(values) => values.values_mut().for_each(hostile),
        _ => {}
    }
}

fn gateway() -> Played {
    let why = || {
        json!({"code": "a", "class": "a", "message": "a", "reason": "a", "logTail": "a", "signal": "a",
        "events": [{"type": "a", "reason": "a", "message": "a", "at": "2026-01-02T03:04:05Z"}]})
    };
    let submission = json!({"id": "a", "name": "a", "state": "FAILED", "owner": "a", "namespace": "a", "labels": {"a": "a"},
        "attempt": 1, "createdAt": "2026-01-02T03:04:05Z", "sparkVersion": "a", "applicationId": "a", "exitCode": 3,
        "driver": {"pod": "a", "node": "a", "ip": "a"}, "failure": why(), "waiting": why(), "warnings": ["a"]});
    let change = json!({"sequence": 1, "submissionId": "a", "attempt": 1, "state": "FAILED", "reason": "a", "message": "a",
        "at": "2026-01-02T03:04:05Z"});
    let token = json!({"id": "a", "name": "a", "tenant": "a", "role": "a", "createdBy": "a", "token": "a"});
    Played::new(move |asked| {
        let mut body = match asked.what.as_str() {
            what if what.ends_with("/logs") => {
                let body = format!("{HOSTILE}\r\nthe end\n");
                return Reply::Answer { status: 200, headers: Vec::new(), body };
            }
            what if what.ends_with("/events") => json!({"items": [change]}),
            "GET /v1/submissions" => json!({"items": [submission]}),
            "POST /v1/submissions" if asked.query.contains("dryRun") => {
                json!({"manifest": {"kind": "a"}, "warnings": ["a"],
                "defaults": [{"key": "a", "value": "a", "origin": "a"}]})
            }
            "GET /v1/me" => {
                json!({"subject": "a", "groups": ["a"], "tenants": [{"name": "a", "role": "a", "namespaces": ["a"]}]})
            }
            "GET /v1/tokens" => json!({"tokens": [token]}),
            "POST /v1/tokens" => token.clone(),
            "GET /v1/audit" => {
                json!({"entries": [{"id": "a", "subject": "a", "address": "a", "action": "a", "tenant": "a",
                "submission": "a", "verdict": "a", "reason": "a", "at": "2026-01-02T03:04:05Z"}]})
            }
            "DELETE /v1/tokens/x" => {
                let mut problem = json!({"title": "a", "detail": "a", "code": "a", "requestId": "a",
                    "errors": [{"pointer": "a", "detail": "a"}]});
                hostile(&mut problem);
                return json_answer(401, &problem);
            }
            "GET /v1/login" => {
                json!({"issuers": [{"name": "a", "issuer": "a", "clientId": "a"}, {"name": "a", "issuer": "a", "clientId": "a"}]})
            }
            _ => submission.clone(),
        };
        hostile(&mut body);
        json_answer(200, &body)
    })
}

#[test]
fn nothing_that_a_gateway_sends_controls_the_terminal() {
    let gateway = gateway();
    for words in [
        &["status", ID][..],
        &["status", ID, "-o", "json"],
        &["list"],
        &["list", "-o", "json"],
        &["list", "--all", "-o", "json"],
        &["logs", ID],
        &["logs", "-f", ID],
        &["kill", ID],
        &["kill", "--wait", ID],
        &["wait", ID],
        &["wait", ID, "-o", "json"],
        &["events", ID],
        &["events", ID, "-o", "json"],
        &["submit", "local:///a.py"],
        &["submit", "--wait", "local:///a.py"],
        &["submit", "--dry-run", "local:///a.py"],
        &["whoami"],
        &["token", "list"],
        &["token", "create", "--name", "a", "--tenant", "a", "--role", "a"],
        &["token", "revoke", "x"],
        &["audit"],
        &["audit", "-o", "json"],
    ] {
        let received = in_terminal(&mut command(&gateway.url(), words));
        let text = without_colours(&received).replace("\r\n", "\n");
        let steers = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}');
        assert!(!text.contains(steers), "{words:?}: {text:?}");
        assert!(text.contains('a') && text.contains('\u{fffd}') || text.contains("\\u001b"), "{words:?}: {text:?}");
    }
}

#[test]
fn a_log_in_a_pipe_is_unchanged() {
    let output = command(&gateway().url(), &["logs", ID]).output().unwrap();
    assert_eq!(output.stdout, format!("{HOSTILE}\r\nthe end\n").into_bytes());
    let log = in_terminal(&mut command(&gateway().url(), &["logs", ID]));
    assert!(log.ends_with("b\r\nc\r\nthe end\r\n"), "{log:?}");
}
