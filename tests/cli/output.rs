//! What is written to standard output and standard error.

use std::process::Stdio;

use serde_json::json;

use crate::{
    played::{Played, json_answer, submission},
    run::{command, run},
};

fn many() -> Played {
    let items: Vec<_> = (0..5000).map(|n| submission(&format!("driver-1-{n:04}"), "RUNNING")).collect();
    Played::new(move |_| json_answer(200, &json!({ "items": items })))
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let gateway = many();
    for words in [&["list"][..], &["list", "-o", "json"]] {
        let mut child = command(&gateway.url(), words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
    }
}

#[test]
fn a_full_disk_is_reported() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let child = command(&many().url(), &["list"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: writing to standard output: No space"));
}

#[test]
fn a_closed_standard_error_stops_nothing() {
    let mut child = command("http://127.0.0.1:1", &["list"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1), "not 101, the code of a panic");
}

#[test]
fn output_to_a_pipe_has_no_colours_and_full_names() {
    let name = "a name of more than eighty letters ".repeat(5);
    let mut long = submission("driver-1-1", "FAILED");
    long["name"] = json!(name.trim());
    long["owner"] = json!("\u{1b}[31mmallory\nroot");
    let gateway = Played::new(move |_| json_answer(200, &json!({ "items": [long] })));
    let ended = run(&gateway, &["list"]);
    assert!(ended.stdout.contains(name.trim()) && !ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
    assert_eq!(ended.stdout.lines().count(), 2, "a name has no line breaks");
}
