//! Spark's explanations of an executor's exit code.

/// Returns Spark's explanation of the exit code of an executor, if there is one: that of `ExecutorPodsLifecycleManager`, which
/// a driver on Kubernetes logs, or, where that says «unexpected», that of `ExecutorExitCode`.
pub(super) fn spark_words(code: i32) -> Option<&'static str> {
    Some(match code {
        1 => "generic, look at logs to clarify",
        10 | 50 => "Uncaught exception",
        42 => "Douglas Adams fan",
        51 => "Uncaught exception, and logging the exception failed",
        52 => "JVM OOM",
        53 => "DiskStore failed to create temp dir",
        54 => "ExternalBlockStore failed to initialize",
        55 => "ExternalBlockStore failed to create a local temporary directory",
        56 => "Unable to send heartbeats to driver",
        57 => "Executor killed by TaskReaper",
        58 => "Executor killed due to a failure of block manager re-registration",
        126 => "not executable - possibly perm or arch",
        137 => "SIGKILL, possible container OOM",
        139 => "SIGSEGV: that's unexpected",
        255 => "exit-1, your guess is as good as mine",
        _ => return None,
    })
}
