//! Processes that may not be children of this one.

use std::{path::Path, time::Duration};

use rustix::process::Pid;

/// How often a process that isn't a child of this one is checked.
const LOOK: Duration = Duration::from_secs(2);

/// Waits for the end of a process.
pub(super) async fn gone(pid: Pid) {
    while runs(pid) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns whether a process runs. A zombie, which has ended and waits for its parent (Z, or X for a moment), does not.
pub(super) fn runs(pid: Pid) -> bool {
    let stat = Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("stat");
    // `pid (name) state …`, and the name may contain anything (proc_pid_stat(5)).
    let state = |text: String| text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    std::fs::read_to_string(stat).ok().and_then(state).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zombie_process_does_not_run() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        assert!(runs(pid));
        drop(child.stdin.take());
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while runs(pid) {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
