//! What happens to each job: decided by the seed and the job's number, and carried to the kubelet in its arguments.

use std::time::Duration;

use super::dice::Dice;

/// How a driver ends that is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Exit(i32),
    /// Exit code 137 with the reason `OOMKilled`.
    OutOfMemory,
    /// Phase `Failed` with the reason `Evicted`, and no word about the container.
    Evicted,
    /// It exits by itself, and somebody deletes the pod a while later.
    ExitThenDeleted(i32),
    /// Somebody deletes the pod; the container ends on SIGTERM.
    DeletedByOthers,
    /// Somebody deletes the pod by force; nobody reports on the container.
    ForceDeleted,
    /// The scheduler marks the pod as a target and deletes it; the container ends on SIGTERM.
    Preempted,
    /// The pod garbage collector marks the pod as failed and then deletes it by force.
    NodeVanished,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) number: u32,
    /// Between the pod's being scheduled and the start of its container.
    pub(crate) pulls: Duration,
    pub(crate) runs: Duration,
    pub(crate) ending: Ending,
    /// A client asks for its end this long after it was accepted.
    pub(crate) kill_after: Option<Duration>,
    /// Attempts that may follow one that the infrastructure ended.
    pub(crate) retries: u32,
}

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
        // Some end before anybody could have seen them run.
        let runs = if dice.one_in(5) { Duration::ZERO } else { dice.millis(10, 3000) };
        let kill_after = dice.one_in(6).then(|| dice.millis(0, 2500));
        let (pulls, retries) = (dice.millis(0, 300), u32::from(dice.one_in(3)));
        Self { number, pulls, runs, ending, kill_after, retries }
    }

    /// The argument by which the kubelet knows it again.
    pub(crate) fn argument(number: u32) -> String {
        format!("job-{number}")
    }

    pub(crate) fn number_in(arguments: &[String]) -> Option<u32> {
        arguments.iter().find_map(|argument| argument.strip_prefix("job-")?.parse().ok())
    }
}
