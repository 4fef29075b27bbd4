//! `sparkgate completions`.

use std::process::Stdio;

use crate::cli::run::{command, run_at};

const NOWHERE: &str = "http://127.0.0.1:1";

#[test]
fn completions_exist_for_three_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = run_at(NOWHERE, &["completions", shell]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{shell}");
        for part in ["submit", "idempotency-key", "completions"] {
            assert!(ended.stdout.contains(part), "{shell}: {part}");
        }
    }
    let ended = run_at(NOWHERE, &["completions", "csh"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("bash, zsh, fish"), "{}", ended.stderr);
}

#[test]
fn bash_completes_commands_and_options() {
    let script = "source /dev/stdin; complete_of() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
                  _sparkgate sparkgate \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
                  echo ${COMPREPLY[@]}; }; complete_of sparkgate st; complete_of sparkgate logs --foll";
    let mut script_of_bash = command(NOWHERE, &["completions", "bash"]).stdout(Stdio::piped()).spawn().unwrap();
    let output = std::process::Command::new("bash")
        .args(["-c", script])
        .stdin(script_of_bash.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(script_of_bash.wait().unwrap().success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "status\n--follow\n", "{:?}", output.stderr);
}
