//! What is written to standard output and standard error.

use std::{
    io::{Seek, Write},
    process::Stdio,
};

use serde_json::json;

use crate::cli::{
    played::{Played, Reply, json_answer, submission},
    run::{command, run, run_at},
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
fn a_closed_pipe_ends_commands_without_a_gateway_quietly() {
    let mut request = tempfile::tempfile().unwrap();
    let properties = r#"{"spark.kubernetes.container.image": "spark:test"}"#;
    write!(request, r#"{{"appResource": "local:///app.py", "sparkProperties": {properties}}}"#).unwrap();
    for words in [&["render"][..], &["openapi"], &["completions", "bash"]] {
        request.rewind().unwrap();
        let mut command = command("", words);
        command.stdin(request.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn the_help_of_client_commands_has_no_options_of_the_log() {
    let help = |command: &str| run_at("", &[command, "--help"]).stdout;
    for command in ["submit", "status", "list", "logs", "kill", "wait", "events"] {
        assert!(help(command).contains("--server") && !help(command).contains("--log"), "{}", help(command));
    }
    for words in [["context", "list", "--help"], ["context", "show", "--help"]] {
        let help = run_at("", &words).stdout;
        assert!(help.contains("Usage: sparkgate context ") && !help.contains("--log"), "{help}");
    }
    assert!(help("serve").contains("--log <FILTER>") && help("serve").contains("--log-format"));
    // They are accepted, as everywhere.
    let gateway = Played::new(|_| json_answer(200, &json!({ "items": [] })));
    assert_eq!(run(&gateway, &["list", "--log", "debug", "--log-format", "json"]).code, Some(0));
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

#[test]
fn colours_follow_the_environment_and_documents_have_none() {
    let body = "{\"items\": [], \"note\": \"\u{1b}[31m\"}";
    let gateway = Played::new(move |asked| match asked.query.as_str() {
        "limit=1" => Reply::Answer { status: 200, headers: Vec::new(), body: body.to_owned() },
        _ => json_answer(200, &json!({ "items": [submission("driver-1-1", "FAILED")] })),
    });
    let output = |words: &[&str], variables: &[(&str, &str)]| {
        let output = command(&gateway.url(), words).envs(variables.iter().copied()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(output(&["list"], &[("CLICOLOR_FORCE", "1")]).contains("\u{1b}[31mFAILED\u{1b}[0m"));
    assert!(!output(&["list"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
    // A document stays as it is, even if its text looks like a colour.
    assert_eq!(output(&["list", "--limit", "1", "-o", "json"], &[]), format!("{body}\n"));
}
