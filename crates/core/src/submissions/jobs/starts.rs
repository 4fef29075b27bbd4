//! How long the starts of a job's runs take, step by step.

use super::{
    super::startup::{StartupStep, durations},
    history::quantile,
};
use sparkgate_store::StartTimes;

/// How long the steps of the last starts took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobStarts {
    /// How many starts are known.
    pub runs: usize,
    /// Only steps that are known of one at least, in their usual order.
    pub steps: Vec<StepDuration>,
}

/// How long a step took, since the step before, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepDuration {
    pub step: StartupStep,
    /// Of how many starts it is known.
    pub runs: usize,
    pub median_seconds: f64,
    pub p90_seconds: f64,
}

impl JobStarts {
    /// Derives it from the starts of runs.
    pub(super) fn of(starts: &[StartTimes]) -> Self {
        let all: Vec<_> = starts.iter().flat_map(durations).collect();
        let step = |step: StartupStep| {
            let mut seconds: Vec<f64> = all.iter().filter(|one| one.0 == step).map(|one| one.1).collect();
            seconds.sort_by(f64::total_cmp);
            let (median_seconds, p90_seconds) = quantile(&seconds, 0.5).zip(quantile(&seconds, 0.9))?;
            Some(StepDuration { step, runs: seconds.len(), median_seconds, p90_seconds })
        };
        Self { runs: starts.len(), steps: StartupStep::ALL.into_iter().filter_map(step).collect() }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;
    use sparkgate_store::StartupTimes;

    /// Returns the start of a driver whose objects existed after a second, and whose container started after so many more.
    fn start(seconds: i64) -> StartTimes {
        let queued_at = "2026-01-02T00:00:00Z".parse::<DateTime<Utc>>().unwrap();
        let after = |seconds| Some(queued_at + TimeDelta::seconds(seconds));
        let recorded =
            StartupTimes { attempt_queued_at: Some(queued_at), objects_at: after(1), ..StartupTimes::default() };
        StartTimes { attempt: 1, started_at: after(1 + seconds), recorded, ..StartTimes::default() }
    }

    #[test]
    fn half_and_nine_of_ten_starts_took_no_longer() {
        let starts: Vec<_> = (1..=10).map(start).collect();
        let found = JobStarts::of(&starts);
        let step = |step, median_seconds, p90_seconds| StepDuration { step, runs: 10, median_seconds, p90_seconds };
        assert_eq!(found.runs, 10);
        assert_eq!(found.steps, [step(StartupStep::Created, 1.0, 1.0), step(StartupStep::Started, 5.0, 9.0)]);
        assert_eq!(JobStarts::of(&[]), JobStarts::default());
    }
}
