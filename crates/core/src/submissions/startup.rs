//! Where the time between the acceptance of an attempt and its first job went.

use chrono::{DateTime, Utc};

use sparkgate_store::{StartTimes, StartupTimes, Submission};

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
    let Submission { attempt, admitted_at, started_at, .. } = *of;
    let recorded = times.clone();
    steps(&StartTimes { attempt, admitted_at, started_at, first_job_at: first_job, recorded })
}

/// Returns the steps of an attempt's start, likewise.
pub fn steps(of: &StartTimes) -> Vec<(StartupStep, DateTime<Utc>)> {
    let times = &of.recorded;
    let at = |step| match step {
        StartupStep::Queued => times.attempt_queued_at,
        StartupStep::Admitted => of.admitted_at,
        StartupStep::Created => times.objects_at,
        StartupStep::Scheduled => times.node_at,
        StartupStep::Started => of.started_at,
        StartupStep::ExecutorRequested => times.executor_created_at,
        StartupStep::ExecutorStarted => times.executor_started_at,
        StartupStep::FirstJob => of.first_job_at,
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

/// Returns the steps after the first with the seconds that each took since the one before. The first of a later attempt is left out: it
/// contains the pause before that attempt.
pub fn durations(of: &StartTimes) -> Vec<(StartupStep, f64)> {
    let steps = steps(of);
    let seconds = |from: &DateTime<Utc>, to: &DateTime<Utc>| (*to - *from).num_milliseconds() as f64 / 1000.0;
    let between = steps.iter().zip(steps.iter().skip(1));
    let between = between.map(|((_, from), (step, to))| (*step, seconds(from, to)));
    between.skip(usize::from(of.attempt > 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(1_767_225_600 + second, 0)
    }

    #[test]
    fn each_step_takes_the_time_since_the_one_before_and_a_pause_is_none() {
        let recorded = StartupTimes {
            attempt_queued_at: at(0),
            objects_at: at(2),
            // Kubernetes truncates times.
            node_at: at(1),
            executor_created_at: at(10),
            executor_started_at: at(18),
        };
        let first = StartTimes { attempt: 1, admitted_at: None, started_at: at(5), first_job_at: at(12), recorded };
        let words = |of: &StartTimes| -> Vec<_> {
            durations(of).into_iter().map(|(step, seconds)| (step.as_str(), seconds)).collect()
        };
        let of_spark = [("started", 3.0), ("executorRequested", 5.0), ("firstJob", 2.0), ("executorStarted", 6.0)];
        let of_gateway = [("created", 2.0), ("scheduled", 0.0)];
        assert_eq!(words(&first), [&of_gateway[..], &of_spark].concat());
        let later = StartTimes { attempt: 2, ..first };
        assert_eq!(words(&later), [&of_gateway[1..], &of_spark].concat());
        assert!(durations(&StartTimes::default()).is_empty());
    }
}
