//! Runs a pod's container to its end.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::super::logs::LogFile;
use super::super::played;
use super::super::process::Process;
use super::super::status::{State, exit_reason};
use super::{Interrupt, LAUNCHED, Plan, Worker, deadline_exceeded};

/// Kubernetes' default grace period.
const GRACE_SECONDS: i64 = 30;
/// Grace period of processes when the whole node shuts down, and the timeout for their last report.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
const SHUTDOWN_REPORT: Duration = Duration::from_secs(3);

impl Worker {
    /// Runs the container and reports its end.
    pub(super) async fn execute(&mut self, plan: Plan) {
        let container = self.seen.container.clone().unwrap_or_default();
        let file = LogFile::new(&self.dir, &container);
        let begun = std::fs::write(self.dir.join(LAUNCHED), Timestamp::now().to_string())
            .and_then(|()| self.node.logs.begin(&self.namespace, &self.name, &self.uid, file));
        let log = match begun {
            Ok(log) => log,
            Err(error) => return self.cannot_start(&format!("cannot write the container's log: {error}")).await,
        };
        let since = Timestamp::now();
        match plan {
            Plan::Play(role, args) => {
                self.running(since).await;
                let mut play = std::pin::pin!(played::play(role, &args, log));
                tokio::select! {
                    code = &mut play => self.end(code, exit_reason(code), None, Some(since)).await,
                    interrupt = self.interrupted() => {
                        self.judge(&interrupt);
                        self.finish(143, since, &interrupt).await;
                    }
                }
            }
            Plan::Run(launch) => match Process::start(&launch, &self.dir, log) {
                Ok(process) => self.supervise(process, since).await,
                Err(error) => self.cannot_start(&format!("cannot start {}: {error}", launch.program.display())).await,
            },
        }
    }

    async fn supervise(&mut self, mut process: Process, since: Timestamp) {
        self.running(since).await;
        let interrupt = tokio::select! {
            code = process.exit_code() => {
                process.clean_up().await;
                return self.end(code, exit_reason(code), None, Some(since)).await;
            }
            interrupt = self.interrupted() => interrupt,
        };
        self.judge(&interrupt);
        process.terminate();
        let code = self.exit_within_grace(&mut process, &interrupt).await;
        process.clean_up().await;
        self.finish(code, since, &interrupt).await;
    }

    /// Waits for the exit, and kills the process after the grace period, which a second delete may shorten.
    async fn exit_within_grace(&mut self, process: &mut Process, interrupt: &Interrupt) -> i32 {
        let start = Instant::now();
        loop {
            let grace = match interrupt {
                Interrupt::Shutdown => SHUTDOWN_GRACE,
                Interrupt::Deleted | Interrupt::Deadline => grace(&self.current()),
            };
            tokio::select! {
                code = process.exit_code() => return code,
                () = tokio::time::sleep_until(start + grace) => {
                    process.kill();
                    return process.exit_code().await;
                }
                Ok(()) = self.pod.changed() => {}
            }
        }
    }

    fn judge(&mut self, interrupt: &Interrupt) {
        self.seen.verdict = match interrupt {
            Interrupt::Deleted => None,
            Interrupt::Deadline => Some(deadline_exceeded()),
            Interrupt::Shutdown => Some(("NodeShutdown", "the sandbox node was stopped".to_owned())),
        };
    }

    async fn finish(&mut self, code: i32, since: Timestamp, interrupt: &Interrupt) {
        let limit = if matches!(interrupt, Interrupt::Shutdown) { SHUTDOWN_REPORT } else { Duration::MAX };
        // A sandbox that is shutting down may have stopped its API server first.
        let _ = tokio::time::timeout(limit, self.end(code, exit_reason(code), None, Some(since))).await;
    }

    async fn running(&mut self, since: Timestamp) {
        self.seen.state = State::Running { since };
        self.report().await;
        let container = self.seen.container.as_deref().unwrap_or_default();
        self.events.normal("Started", format!("Started container {container}"));
    }

    async fn cannot_start(&mut self, message: &str) {
        // 128 is the exit code of a container runtime when the program can't be started.
        self.end(128, "StartError", Some(message.to_owned()), None).await;
    }
}

/// Returns the grace period of the deletion, or else the pod's own.
fn grace(pod: &Pod) -> Duration {
    let own = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let seconds = pod.metadata.deletion_grace_period_seconds.or(own).unwrap_or(GRACE_SECONDS);
    Duration::from_secs(seconds.max(0).unsigned_abs())
}
