//! A gateway that is missing, that isn't one, or that stays unavailable.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use crate::cli::{
    played::{Played, Reply, json_answer, problem, submission},
    run::{run, run_at},
};

const ID: &str = "driver-20260102030405-0001";

#[test]
fn an_unreachable_gateway_is_one_line_that_says_what_to_do() {
    // Bound and dropped: no process listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ended = run_at(&format!("http://{address}"), &["list"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for part in ["error: no gateway answers", &format!("http://{address}"), "Connection refused", "SPARKGATE_URL"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}

#[test]
fn the_flag_wins_over_the_variable() {
    let gateway = Played::new(|_| json_answer(200, &submission(ID, "RUNNING")));
    let ended = run_at("http://127.0.0.1:1", &["status", ID, "--server", &gateway.url()]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn retries_end_when_the_gateway_stays_unavailable() {
    let gateway = Played::new(|_| problem(503, "unavailable", "Unavailable", "Postgres is away."));
    let ended = run(&gateway, &["status", ID]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.ends_with("error: Unavailable: Postgres is away.\n  request id: request-1\n"));
    assert_eq!(gateway.asked().len(), 5, "four more tries");
}

#[test]
fn a_server_that_is_no_gateway_is_reported_as_such() {
    let page = |status, headers: &[(&'static str, &str)], body: &'static str| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Played::new(move |_| Reply::Answer { status, headers: headers.clone(), body: body.to_owned() })
    };
    for (gateway, part) in [
        (page(200, &[], "<html>Welcome"), "not one of a Sparkgate"),
        (
            page(403, &[("x-request-id", "r7")], "RBAC: access denied"),
            "HTTP 403 Forbidden: RBAC: access denied\n  request id: r7",
        ),
        (page(308, &[("location", "https://elsewhere/")], ""), "it points to https://elsewhere/"),
    ] {
        let ended = run(&gateway, &["status", ID]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}

#[test]
fn https_to_a_server_without_tls_is_an_ordinary_error() {
    let gateway = Played::new(|_| json_answer(200, &submission(ID, "RUNNING")));
    let ended = run_at(&format!("https://{}", gateway.address), &["status", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.starts_with("error: ") && !ended.stderr.contains("panicked"), "{}", ended.stderr);
}

#[test]
fn https_to_an_http_port_is_reported_in_plain_words() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // As an HTTP server does that doesn't understand the first bytes of TLS.
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let ended = run_at(&format!("https://{address}"), &["status", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    let advice = format!("the server there speaks HTTP without TLS: try http://{address}.");
    assert!(ended.stderr.contains(&advice), "{}", ended.stderr);
}

#[test]
fn a_url_that_ends_in_v1_is_named_as_the_fault() {
    let reply = r#"{"action": "ErrorResponse", "message": "Unknown protocol version 'v1'."}"#;
    let gateway = Played::new(move |asked| match asked.what.starts_with("GET /v1/v1/") {
        true => Reply::Answer { status: 468, headers: Vec::new(), body: reply.to_owned() },
        false => json_answer(200, &submission(ID, "RUNNING")),
    });
    let url = gateway.url();
    let ended = run_at(&format!("{url}/v1/"), &["status", ID]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    let advice = format!("HTTP 468: the URL {url}/v1 ends in /v1, which this client adds itself: use {url}");
    assert!(ended.stderr.contains(&advice), "{}", ended.stderr);
    // A proxy may serve a gateway below any path, also this one.
    let gateway = Played::new(|_| json_answer(200, &submission(ID, "RUNNING")));
    assert_eq!(run_at(&format!("{}/v1", gateway.url()), &["status", ID]).code, Some(0));
}

#[test]
fn a_server_of_sparks_protocol_is_quoted() {
    let reply = r#"{"action": "ErrorResponse", "message": "Unknown protocol version."}"#;
    let gateway = Played::new(move |_| Reply::Answer { status: 468, headers: Vec::new(), body: reply.to_owned() });
    let ended = run(&gateway, &["status", ID]);
    assert_eq!(ended.stderr, "error: HTTP 468: Unknown protocol version.\n");
}
