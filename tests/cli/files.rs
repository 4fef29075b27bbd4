//! Uploads of `sparkgate submit`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::Stdio,
};

use serde_json::json;

use crate::{
    played::{Played, Reply, json_answer, problem, submission},
    run::{command, ended},
    terminal::in_terminal,
};

const ID: &str = "driver-20260102030405-0001";

/// Reads the head of a request, and returns its first line.
fn head(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        line.clear();
    }
    first
}

#[test]
fn an_upload_survives_a_restart_of_the_gateway() {
    let dir = tempfile::tempdir().unwrap();
    let job = dir.path().join("job.py");
    // More than the buffers of a connection, so that the upload is in its middle.
    std::fs::write(&job, vec![b'#'; 8 << 20]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut submit = command(&format!("http://{address}"), &["submit", job.to_str().unwrap()]);
    let mut child = submit.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    let (mut stream, _) = listener.accept().unwrap();
    assert!(head(&stream).starts_with("HEAD /v1/files/"));
    stream.write_all(b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap();
    drop(stream);
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut [0; 1 << 20]).unwrap();
    drop((stream, listener));

    // It waits for so long only if it was refused several times.
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let note = notes.find(|line| line.as_ref().unwrap().contains("retrying in")).unwrap().unwrap();
    assert!(note.contains("retrying in"), "{note}");
    let again = Played::at(address, |asked| match asked.what.split('/').next().unwrap() {
        "PUT " => json_answer(201, &json!({})),
        _ => json_answer(201, &submission(ID, "QUEUED")),
    });
    let notes: Vec<String> = notes.map(Result::unwrap).collect();
    let done = ended(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.stdout), (Some(0), format!("{ID}\n")), "{notes:?}");
    assert!(notes.iter().any(|line| line.starts_with("uploaded job.py (8.0 MiB")), "{notes:?}");
    let asked = again.asked();
    assert_eq!(asked[0].body.len(), 8 << 20, "the upload begins anew");
    assert!(asked.last().unwrap().body.contains("sparkgate-file:/"), "the reference is submitted");
}

#[test]
fn a_refused_upload_is_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let job = dir.path().join("job.py");
    std::fs::write(&job, "print(1)").unwrap();
    let gateway = Played::new(|asked| match asked.what.split('/').next().unwrap() {
        "HEAD " => Reply::Answer { status: 404, headers: Vec::new(), body: String::new() },
        _ => problem(403, "file-quota-exceeded", "The files of the tenant take too much", "No room."),
    });
    let done = ended(command(&gateway.url(), &["submit", job.to_str().unwrap()]).output().unwrap());
    assert_eq!(done.code, Some(1));
    assert_eq!(gateway.asked().len(), 2, "{}", done.stderr);
}

#[test]
fn the_progress_of_an_upload_is_shown_on_a_terminal_only() {
    let dir = tempfile::tempdir().unwrap();
    let job = dir.path().join("job.py");
    std::fs::write(&job, vec![b'#'; 1 << 20]).unwrap();
    let gateway = || {
        Played::new(|asked| match asked.what.split('/').next().unwrap() {
            "HEAD " => Reply::Answer { status: 404, headers: Vec::new(), body: String::new() },
            _ => json_answer(201, &submission(ID, "QUEUED")),
        })
    };
    let played = gateway();
    let shown = in_terminal(&mut command(&played.url(), &["submit", job.to_str().unwrap()]));
    assert!(shown.contains("uploading job.py [") && shown.contains("of 1.00 MiB"), "{shown:?}");
    let played = gateway();
    let done = ended(command(&played.url(), &["submit", job.to_str().unwrap()]).output().unwrap());
    assert!(!done.stderr.contains("uploading") && done.stderr.starts_with("uploaded job.py"), "{}", done.stderr);
}

#[test]
fn a_request_of_standard_input_is_submitted_with_its_local_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.py"), "print(1)").unwrap();
    std::fs::write(dir.path().join("conf.yaml"), "a: 1").unwrap();
    // The gateway has the files.
    let gateway = Played::new(|asked| match asked.what.split('/').next().unwrap() {
        "HEAD " => Reply::Answer { status: 200, headers: Vec::new(), body: String::new() },
        _ => json_answer(201, &submission(ID, "QUEUED")),
    });
    let mut submit = command(&gateway.url(), &["submit", "-f", "-", "--label", "team=b"]);
    submit.current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = submit.spawn().unwrap();
    let text = "name: Pi\nappResource: job.py\nlabels: {team: a, tier: c}\nsparkProperties:\n  spark.files: conf.yaml\n  spark.x: 1\n";
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let done = ended(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.stdout), (Some(0), format!("{ID}\n")), "{}", done.stderr);
    let body = gateway.asked().last().unwrap().json();
    assert_eq!((&body["name"], &body["labels"]), (&json!("Pi"), &json!({"team": "b", "tier": "c"})));
    assert!(body["appResource"].as_str().unwrap().ends_with("/job.py"), "{body:#}");
    assert!(body["sparkProperties"]["spark.files"].as_str().unwrap().ends_with("/conf.yaml"), "{body:#}");
    assert_eq!((&body["environmentVariables"]["SPARK_USER"], &body["mainClass"]), (&json!("alice"), &json!(null)));
}
