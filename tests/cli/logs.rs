//! `sparkgate logs`.

use std::{io::Read, sync::Mutex, sync::mpsc::channel};

use crate::{
    played::{Played, Reply, stream},
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
    for piece in ["first line\n", "half a ", "line\n\u{fc}"] {
        send.send(piece.to_owned()).unwrap();
        let mut printed = vec![0; piece.len()];
        stdout.read_exact(&mut printed).unwrap();
        assert_eq!(String::from_utf8(printed).unwrap(), piece);
    }
    drop(send);
    assert!(child.wait().unwrap().success());
    let asked = gateway.asked().remove(0);
    assert_eq!(asked.what, format!("GET /v1/submissions/{ID}/logs"));
    assert_eq!(asked.query, "follow=true");
}

#[test]
fn an_interrupted_log_is_an_error() {
    let gateway = Played::new(|_| stream("text/plain", &["some\n"], false));
    let ended = run(&gateway, &["logs", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "some\n"));
    assert!(ended.stderr.contains("reading the log of driver-20260102030405-0001: the connection broke"));
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
