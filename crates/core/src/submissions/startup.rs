//! Where the time between the acceptance of an attempt and its first job went.

use chrono::{DateTime, Utc};

use sparkgate_store::{StartupTimes, Submission};

/// A step of a start, in the order in which they usually happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupStep {
    /// The attempt was queued.
    Queued,
    /// Its queue admitted it.
    Admitted,
    /// All its objects exist.
    Created,
    /// Its node accepted the pod: it was scheduled.
    Scheduled,
    /// The driver's container started, after its image was pulled.
    Started,
    /// The pod of the first executor was created: the `SparkContext` is up.
    ExecutorRequested,
    /// The container of an executor started.
    ExecutorStarted,
    /// The first job was submitted.
    FirstJob,
}

impl StartupStep {
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Admitted,
        Self::Created,
        Self::Scheduled,
        Self::Started,
        Self::ExecutorRequested,
        Self::ExecutorStarted,
        Self::FirstJob,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Admitted => "admitted",
            Self::Created => "created",
            Self::Scheduled => "scheduled",
            Self::Started => "started",
            Self::ExecutorRequested => "executorRequested",
            Self::ExecutorStarted => "executorStarted",
            Self::FirstJob => "firstJob",
        }
    }
}

/// Returns the steps of a start that have happened, with their times in order; none before the second. `first_job` is when the driver submitted its first job.
///
/// Kubernetes truncates its times to whole seconds, so a step may seem to precede the one before it: it gets its time then.
pub fn startup(
    of: &Submission,
    times: &StartupTimes,
    first_job: Option<DateTime<Utc>>,
) -> Vec<(StartupStep, DateTime<Utc>)> {
    let at = |step| match step {
        StartupStep::Queued => times.attempt_queued_at,
        StartupStep::Admitted => of.admitted_at,
        StartupStep::Created => times.objects_at,
        StartupStep::Scheduled => times.node_at,
        StartupStep::Started => of.started_at,
        StartupStep::ExecutorRequested => times.executor_created_at,
        StartupStep::ExecutorStarted => times.executor_started_at,
        StartupStep::FirstJob => first_job,
    };
    let known = StartupStep::ALL.into_iter().filter_map(|step| Some((step, at(step)?)));
    let mut steps: Vec<_> = known.collect();
    // Nothing has taken time yet.
    if steps.len() < 2 {
        return Vec::new();
    }
    // A job may be submitted before its executors have started.
    if let [.., (StartupStep::ExecutorStarted, executor), (StartupStep::FirstJob, job)] = &steps[..]
        && job < executor
    {
        let last = steps.len() - 1;
        steps.swap(last - 1, last);
    }
    let mut latest = DateTime::<Utc>::MIN_UTC;
    for (_, at) in &mut steps {
        latest = latest.max(*at);
        *at = latest;
    }
    steps
}
