//! Queues as users and operators see them: the command line with the real gateway, whose loop admits.

use std::fs;

use sparkgate_testing::{gateway::until, process::free_address};

use crate::dev::{Dev, ONE_AT_A_TIME, client};

#[test]
fn a_submission_waits_in_a_paused_queue_and_is_launched_when_it_opens() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start_with(dir.path(), free_address(), &["--require-token"]);
    let said = |words: &[&str]| client(&dev, dir.path(), words);
    assert_eq!(said(&["queue", "list", "-o", "name"]), "");
    let access = dir.path().join("access.yaml");
    let queues = "queues: {day: {priority: {max: 9}}, night: {}}\n";
    let text = fs::read_to_string(&access).unwrap() + queues;
    fs::write(&access, text.replace("['*']", "['*'], defaultQueue: day")).unwrap();
    until("the gateway has read its access file", || said(&["queue", "list", "-o", "name"]) == "day\nnight\n");
    assert_eq!(said(&["queue", "pause", "day", "--reason", "an upgrade"]), "day paused\n");
    let submitted = said(&["submit", "--conf", "spark.sparkgate.queue=day", "--priority", "5", "local:///none.py"]);
    let id = submitted.trim_end();
    let status = said(&["status", id]);
    assert!(status.contains("Queue:       day (priority 5, next)\n"), "{status}");
    assert!(status.contains("queue day is paused"), "{status}");
    assert_eq!(said(&["hold", "--queue", "day", "--reason", "no data"]), "1 submission held\n");
    assert!(said(&["list", "--queue", "day"]).contains("QUEUED (held)"));
    assert_eq!(said(&["release", id]), format!("{id} released\n"));
    assert_eq!(said(&["requeue", id, "--queue", "night"]), format!("{id} in queue night with priority 0\n"));
    until("the other queue admits it", || !said(&["list", "--state", "QUEUED", "-o", "name"]).contains(id));
    assert_eq!(said(&["queue", "open", "day"]), "day open\n");
    let actions = said(&["audit"]);
    for action in ["pause-queue", "hold", "release", "requeue", "resume-queue"] {
        assert!(actions.contains(action), "{action}: {actions}");
    }
}
