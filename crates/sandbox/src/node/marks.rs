//! Finds every process of a pod, including those that left its process group (`PySpark`'s workers do) or lost their parent.
//!
//! A pod's processes inherit an environment variable that names the pod's directory. A process is signalled through a pidfd
//! that is opened before that variable is checked, so a reused process id is never hit.

use std::path::Path;

use rustix::process::{Pid, Signal};

/// The environment variable; its value is the pod's directory.
pub(super) const MARK: &str = "SPARKGATE_POD";

/// Kills all processes that are marked with a directory at or below `dir`, and returns their number.
pub(super) fn kill_below(dir: &Path) -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| kill_if_marked(*pid, dir)).count()
}

fn kill_if_marked(pid: i32, dir: &Path) -> bool {
    let Some(id) = Pid::from_raw(pid) else { return false };
    pid != std::process::id().cast_signed() && is_marked(pid, dir) && kill_if(id, || is_marked(pid, dir))
}

/// Kills a process if the check still holds after a pidfd for it has been opened.
#[cfg(target_os = "linux")]
fn kill_if(id: Pid, check: impl Fn() -> bool) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Ok(fd) = pidfd_open(id, PidfdFlags::empty()) else { return false };
    check() && pidfd_send_signal(fd, Signal::KILL).is_ok()
}

/// Kills a process if the check holds. Without Linux' `/proc` no process is found in the first place; only the process group is
/// killed there.
#[cfg(not(target_os = "linux"))]
fn kill_if(id: Pid, check: impl Fn() -> bool) -> bool {
    check() && rustix::process::kill_process(id, Signal::KILL).is_ok()
}

fn is_marked(pid: i32, dir: &Path) -> bool {
    let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    let value =
        environ.split(|byte| *byte == 0).find_map(|pair| pair.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
    value.and_then(|value| std::str::from_utf8(value).ok()).is_some_and(|value| Path::new(value).starts_with(dir))
}
