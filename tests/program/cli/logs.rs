//! `sparkgate logs`.

use std::{io::Read, sync::Mutex, sync::mpsc::channel};

use serde_json::json;

use crate::cli::{
    played::{Played, Reply, json_answer, problem, stream},
    run::{run, start},
};

const ID: &str = "driver-20260102030405-0001";

#[test]
fn a_log_is_printed_as_it_arrives() {
    let (send, receive) = channel();
    let receive = Mutex::new(Some(receive));
    let gateway = Played::new(move |_| {
        let pieces = receive.lock().unwrap().take().unwrap();
        Reply::Stream { content_type: "text/plain", pieces, ends: true }
    });
    let mut child = start(&gateway, &["logs", "-f", ID]);
    let mut stdout = child.stdout.take().unwrap();
    // Each piece is read before the next is sent: a client that waits for more output would hang here.
    let time = "2026-01-02T03:04:05.123456789Z";
    for (piece, text) in [
        (format!("{time} first line\n"), "first line\n"),
        (format!("{time} half a "), "half a "),
        (format!("line\n{time} \u{fc}"), "line\n\u{fc}"),
    ] {
        send.send(piece).unwrap();
        let mut printed = vec![0; text.len()];
        stdout.read_exact(&mut printed).unwrap();
        assert_eq!(String::from_utf8(printed).unwrap(), text);
    }
    drop(send);
    assert!(child.wait().unwrap().success());
    let asked = gateway.asked().remove(0);
    assert_eq!(asked.what, format!("GET /v1/submissions/{ID}/logs"));
    assert_eq!(asked.query, "follow=true&timestamps=true");
}

#[test]
fn an_interrupted_log_is_an_error() {
    let gateway = Played::new(|_| stream("text/plain", &["some\n"], false));
    let ended = run(&gateway, &["logs", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "some\n"));
    assert!(ended.stderr.contains("reading the log of driver-20260102030405-0001: the connection broke"));
}

#[test]
fn a_log_has_no_output_format() {
    let gateway = Played::new(|_| Reply::HangUp);
    let ended = run(&gateway, &["logs", ID, "-o", "json"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("unexpected argument '-o'") && gateway.asked().is_empty(), "{}", ended.stderr);
}

#[test]
fn log_options_are_passed_to_the_api_and_an_archived_log_is_noted() {
    let gateway = Played::new(|_| {
        let headers = vec![("sparkgate-log-source", "kept".to_owned())];
        Reply::Answer { status: 200, headers, body: "the end\n".to_owned() }
    });
    let words = [
        "logs",
        ID,
        "--tail",
        "5",
        "--since",
        "2026-01-02T03:04:05Z",
        "--executor",
        "2",
        "--attempt",
        "1",
        "--timestamps",
    ];
    let ended = run(&gateway, &words);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "the end\n"));
    assert!(ended.stderr.contains("the pod is gone"), "{}", ended.stderr);
    assert_eq!(
        gateway.asked()[0].query,
        "tail=5&since=2026-01-02T03%3A04%3A05.000Z&executor=2&attempt=1&timestamps=true"
    );
}

const LOG: [&str; 4] = [
    "2026-01-02T03:04:05.1Z one\n",
    "2026-01-02T03:04:06.5Z two\n",
    "2026-01-02T03:04:06.6Z three\n",
    "2026-01-02T03:04:09Z four\n",
];

/// Plays a log whose connection breaks within a line, and again within a timestamp.
fn a_broken_log() -> Played {
    Played::new(|asked| match (asked.what.rsplit('/').next().unwrap(), asked.before) {
        // A retry has begun meanwhile: its log is another one.
        ("attempts", _) => json_answer(
            200,
            &json!({"items": [{"attempt": 1, "state": "RUNNING", "queuedAt": "2026-01-02T03:04:00.000Z"},
                {"attempt": 2, "state": "QUEUED", "queuedAt": "2026-01-02T03:04:10.000Z"}]}),
        ),
        (_, 0) => stream("text/plain", &[LOG[0], LOG[1], &LOG[2][..26]], false),
        (_, 1) => problem(503, "unavailable", "Unavailable", "It begins."),
        (_, 2) => stream("text/plain", &[LOG[1], LOG[2], &LOG[3][..10]], false),
        _ => stream("text/plain", &LOG[1..], true),
    })
}

#[test]
fn a_followed_log_continues_after_a_broken_connection() {
    let gateway = a_broken_log();
    let ended = run(&gateway, &["logs", "-f", "--tail", "9", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "one\ntwo\nthree\nfour\n"), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    let asked = gateway.asked();
    let queries: Vec<&str> =
        asked.iter().filter(|asked| asked.what.ends_with("/logs")).map(|asked| &*asked.query).collect();
    assert_eq!(queries[0], "follow=true&tail=9&timestamps=true");
    // The second stream broke within a timestamp, which is not a line yet: the third begins at the same time.
    assert_eq!(queries[1..], ["follow=true&since=2026-01-02T03%3A04%3A05.600000000Z&attempt=1&timestamps=true"; 3]);
    let ended = run(&a_broken_log(), &["logs", "-f", "--timestamps", "--attempt", "1", ID]);
    assert_eq!((ended.code, ended.stdout), (Some(0), LOG.concat()), "{}", ended.stderr);
}

#[test]
fn a_log_whose_lines_were_deleted_meanwhile_has_a_visible_gap() {
    let gateway = Played::new(|asked| match (asked.what.rsplit('/').next().unwrap(), asked.before) {
        ("attempts", _) => json_answer(200, &json!({"items": []})),
        (_, 0) => stream("text/plain", &["2026-01-02T03:04:05Z one\n"], false),
        _ => stream("text/plain", &["2026-01-02T03:05:00Z ninety\n"], true),
    });
    let ended = run(&gateway, &["logs", "-f", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "one\nninety\n"));
    assert!(ended.stderr.contains("lines are missing here"), "{}", ended.stderr);
}
