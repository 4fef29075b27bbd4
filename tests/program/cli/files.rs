//! Uploads of `sparkgate submit`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::Stdio,
};

use serde_json::json;

use crate::cli::{
    played::{Played, Reply, json_answer, problem, submission},
    run::{Ended, command},
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
    let done = Ended::from(child.wait_with_output().unwrap());
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
    let done = Ended::from(command(&gateway.url(), &["submit", job.to_str().unwrap()]).output().unwrap());
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
    let done = Ended::from(command(&played.url(), &["submit", job.to_str().unwrap()]).output().unwrap());
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
    let done = Ended::from(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.stdout), (Some(0), format!("{ID}\n")), "{}", done.stderr);
    let body = gateway.asked().last().unwrap().json();
    assert_eq!((&body["name"], &body["labels"]), (&json!("Pi"), &json!({"team": "b", "tier": "c"})));
    assert!(body["appResource"].as_str().unwrap().ends_with("/job.py"), "{body:#}");
    assert!(body["sparkProperties"]["spark.files"].as_str().unwrap().ends_with("/conf.yaml"), "{body:#}");
    assert_eq!((&body["environmentVariables"]["SPARK_USER"], &body["mainClass"]), (&json!("alice"), &json!(null)));
}

#[test]
fn a_large_upload_continues_where_the_gateway_says() {
    let dir = tempfile::tempdir().unwrap();
    let job = dir.path().join("job.py");
    let size = 65 << 20;
    std::fs::write(&job, vec![b'#'; size]).unwrap();
    let arrived = |offset: usize| vec![("upload-offset", offset.to_string())];
    let gateway = Played::new(move |asked| {
        let (method, before) = (asked.what.split('/').next().unwrap(), asked.before);
        match (method, before) {
            ("HEAD ", 0) => Reply::Answer { status: 404, headers: arrived(100), body: String::new() },
            // It has recorded more than it had answered, and another client is faster.
            ("PATCH ", 0) => Reply::Answer { status: 409, headers: arrived(1000), body: String::new() },
            ("PATCH ", 1) => Reply::HangUp,
            ("HEAD ", _) => Reply::Answer { status: 404, headers: arrived(size - 10), body: String::new() },
            _ => json_answer(201, &json!({})),
        }
    });
    let done = Ended::from(command(&gateway.url(), &["files", "upload", job.to_str().unwrap()]).output().unwrap());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.starts_with("sparkgate-file:/") && done.stdout.ends_with("/job.py\n"), "{}", done.stdout);
    let asked = gateway.asked();
    let sent: Vec<_> = asked.iter().filter(|asked| asked.what.starts_with("PATCH")).collect();
    let sent: Vec<_> = sent.iter().map(|asked| (asked.headers["upload-offset"].as_str(), asked.body.len())).collect();
    let last = (size - 10).to_string();
    assert_eq!(sent, [("100", size - 100), ("1000", size - 1000), (last.as_str(), 10)]);
}

#[test]
fn globs_of_local_files_are_expanded() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["job.py", "a.jar", "b.jar", "c.zip"] {
        std::fs::write(dir.path().join(name), name).unwrap();
    }
    let gateway = Played::new(|asked| match asked.what.split('/').next().unwrap() {
        "HEAD " => Reply::Answer { status: 200, headers: Vec::new(), body: String::new() },
        _ => json_answer(201, &submission(ID, "QUEUED")),
    });
    let submit = |words: &[&str]| {
        let mut submit = command(&gateway.url(), &[&["submit"], words].concat());
        Ended::from(submit.current_dir(dir.path()).output().unwrap())
    };
    let done = submit(&["--jars", "*.jar,local:///x/*.jar", "--conf", "spark.archives=?.zip#env", "job.py"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let body = gateway.asked().last().unwrap().body.clone();
    let places: Vec<_> =
        ["/a.jar,sparkgate-file:/", "/b.jar,local:///x/*.jar", "/c.zip#env"].map(|word| body.find(word)).into();
    assert!(places.iter().all(Option::is_some), "{body}");
    let refused = submit(&["--jars", "lib/*.jar", "job.py"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("lib/*.jar: no file matches"), "{}", refused.stderr);
}

#[test]
fn files_are_listed_and_deleted() {
    let gateway = Played::new(|asked| match (asked.what.as_str(), asked.before) {
        ("GET /v1/files", 0) => json_answer(
            200,
            &json!({"tenant": "red", "next": "more", "items": [
                {"sha256": "aa", "size": 2048, "createdBy": "corp:alice", "createdAt": "2026-01-02T03:04:05Z", "submissions": 2}]}),
        ),
        ("GET /v1/files", _) => json_answer(
            200,
            &json!({"tenant": "red", "items": [
                {"sha256": "bb", "size": 1, "createdBy": "corp:bob", "createdAt": "2026-01-02T03:04:05Z", "submissions": 0}]}),
        ),
        ("DELETE /v1/files/aa", _) => {
            problem(409, "file-used", "Live submissions use the file", "2 live submissions use the file.")
        }
        _ => Reply::Answer { status: 204, headers: Vec::new(), body: String::new() },
    });
    let run = |words: &[&str]| Ended::from(command(&gateway.url(), &[&["files"], words].concat()).output().unwrap());
    let listed = run(&["list", "--namespace", "spark"]);
    assert!(listed.stdout.contains("2.0 KiB") && listed.stdout.contains("in use"), "{}", listed.stdout);
    assert!(listed.stdout.contains("bb") && listed.stdout.contains("never"), "{}", listed.stdout);
    assert!(gateway.asked()[1].query.contains("cursor=more") && gateway.asked()[1].query.contains("namespace=spark"));
    let refused = run(&["rm", "aa"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("2 live submissions"), "{}", refused.stderr);
    let deleted = run(&["rm", "bb"]);
    assert_eq!((deleted.code, deleted.stderr.as_str()), (Some(0), "the file bb is deleted\n"));
}
