//! The plan of each job: determined by the seed and the job's number, and passed to the kubelet in the job's arguments.

use std::time::Duration;

use sparkgate_testing::dice::Dice;

/// How a driver ends if nothing else intervenes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Exit(i32),
    /// Exit code 137 with the reason `OOMKilled`.
    OutOfMemory,
    /// Phase `Failed` with the reason `Evicted`, and no status of the container.
    Evicted,
    /// It exits by itself, and another client deletes the pod a while later.
    ExitThenDeleted(i32),
    /// Another client deletes the pod; the container ends on SIGTERM.
    DeletedByOthers,
    /// Another client deletes the pod by force; the end of the container isn't reported.
    ForceDeleted,
    /// The scheduler marks the pod as a preemption target and deletes it; the container ends on SIGTERM.
    Preempted,
    /// The pod garbage collector marks the pod as failed and then deletes it by force.
    NodeVanished,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) number: u32,
    /// The time between the scheduling of the pod and the start of its container.
    pub(crate) pulls: Duration,
    pub(crate) runs: Duration,
    pub(crate) ending: Ending,
    /// A client requests a kill this long after the submission was accepted.
    pub(crate) kill_after: Option<Duration>,
    /// Further attempts allowed after an infrastructure failure.
    pub(crate) retries: u32,
    /// It is a session of Spark Connect, where there are any: its driver runs until it is killed.
    pub(crate) session: bool,
    /// Further attempts with more memory after it ran out of it.
    pub(crate) growth: u32,
    /// It is restarted until it succeeds, which it does then.
    pub(crate) restarts: bool,
}

/// The attempt in which a job that is restarted succeeds.
const LAST_RESTART: i32 = 3;

impl Job {
    pub(crate) fn planned(seed: u64, number: u32) -> Self {
        let mut dice = Dice::new(seed ^ (u64::from(number) << 32), "job");
        let ending = dice.weighed(&[
            (40, Ending::Exit(0)),
            (12, Ending::Exit(3)),
            (6, Ending::OutOfMemory),
            (6, Ending::Evicted),
            (4, Ending::ExitThenDeleted(0)),
            (6, Ending::ExitThenDeleted(4)),
            (8, Ending::DeletedByOthers),
            (7, Ending::ForceDeleted),
            (4, Ending::Preempted),
            (7, Ending::NodeVanished),
        ]);
        // Some end before they could be seen running.
        let runs = if dice.one_in(5) { Duration::ZERO } else { dice.millis(10, 3000) };
        let kill_after = dice.one_in(6).then(|| dice.millis(0, 2500));
        let (pulls, retries) = (dice.millis(0, 300), u32::from(dice.one_in(3)));
        let session = dice.one_in(12);
        let (growth, restarts) = (u32::from(dice.one_in(2)), dice.one_in(8));
        Self { number, pulls, runs, ending, kill_after, retries, session, growth, restarts }
    }

    /// Returns the plan of one attempt.
    pub(crate) fn in_attempt(mut self, attempt: i32) -> Self {
        if self.restarts && attempt >= LAST_RESTART {
            self.ending = Ending::Exit(0);
        }
        self
    }

    /// Returns the argument by which the kubelet identifies the job.
    pub(crate) fn argument(number: u32) -> String {
        format!("job-{number}")
    }

    /// Returns the number in arguments, or in values of variables.
    pub(crate) fn number_in(arguments: &[String]) -> Option<u32> {
        arguments.iter().find_map(|argument| argument.strip_prefix("job-")?.parse().ok())
    }
}
