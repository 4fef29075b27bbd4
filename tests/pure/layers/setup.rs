//! `scripts/setup` waits while another apt works, and only then.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use tempfile::TempDir;

/// Runs the function `until_free` of the script with an apt that fails so often with this text. Returns its exit code, what it printed,
/// and how often apt was called.
fn until_free(failures: u32, text: &str, seconds: u32) -> (i32, String, usize) {
    let script = fs::read_to_string("scripts/setup").unwrap();
    let begin = script.find("until_free() {").unwrap();
    let end = begin + script[begin..].find("\n}\n").unwrap() + 3;
    let dir = TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name);
    let calls = path("calls");
    let apt = format!(
        "#!/bin/sh\necho call >> {calls}\n[ $(wc -l < {calls}) -gt {failures} ] && exit 0\necho '{text}' >&2\nexit 100\n",
        calls = calls.display()
    );
    fs::write(path("apt-get"), apt).unwrap();
    fs::set_permissions(path("apt-get"), fs::Permissions::from_mode(0o755)).unwrap();
    let program = format!(
        "set -euo pipefail\nsay() {{ echo \"say: $*\"; }}\ndie() {{ echo \"die: $*\"; exit 1; }}\nsleep() {{ :; }}\n\
         as_root=() log={}\n{}\nuntil_free apt-get update 2>&1\n",
        path("log").display(),
        &script[begin..end]
    );
    let search = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &program]).env("PATH", search).env("SPARKGATE_APT_WAIT", seconds.to_string());
    let output = bash.output().unwrap();
    let calls = fs::read_to_string(calls).unwrap().lines().count();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), calls)
}

#[test]
fn the_script_waits_for_another_apt_and_says_so_once() {
    for text in [
        "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)",
        "E: Unable to lock directory /var/lib/apt/lists/",
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?",
    ] {
        assert_eq!(until_free(3, text, 600), (0, "say: waiting for another apt\n".to_owned(), 4), "{text}");
    }
}

#[test]
fn the_script_fails_at_once_for_another_reason_and_in_the_end_for_a_lock() {
    let (code, printed, calls) = until_free(3, "E: Unable to locate package x", 600);
    assert_eq!((code, calls), (1, 1), "{printed}");
    assert!(printed.contains("E: Unable to locate") && printed.contains("die: failed: apt-get update"), "{printed}");
    let (code, printed, calls) = until_free(3, "E: Could not get lock /var/lib/apt/lists/lock", 0);
    assert_eq!((code, calls), (1, 1), "{printed}");
}
