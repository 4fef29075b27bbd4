//! What the last runs of a job tell.

use chrono::{DateTime, TimeDelta, Utc};

use sparkgate_store::JobRun;
use sparkgate_submission::{FailureCode, State, SubmissionId};

/// Times between runs that there must be before the next one is expected.
const LEAST_INTERVALS: usize = 5;
/// The share of these times that must be near their median, and how near: this part of it, or this many seconds.
const REGULAR: f64 = 0.8;
const NEAR: f64 = 0.1;
const NEAR_SECONDS: f64 = 60.0;

/// What the last runs of a job tell. Runs that were killed count neither as success nor as failure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobHistory {
    pub succeeded: usize,
    pub failed: usize,
    pub last_success: Option<(SubmissionId, DateTime<Utc>)>,
    pub last_failure: Option<(SubmissionId, DateTime<Utc>)>,
    pub usual_failure: Option<UsualFailure>,
    /// Of successful runs, from the start of the driver to its end, in seconds.
    pub median_seconds: Option<f64>,
    pub p90_seconds: Option<f64>,
    /// When the next run is expected, if runs are submitted at regular times.
    pub next_expected_at: Option<DateTime<Utc>>,
}

/// The most frequent failure of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsualFailure {
    pub code: FailureCode,
    pub count: usize,
    /// Of the newest one.
    pub message: Option<String>,
}

impl JobHistory {
    /// Derives it from runs, the newest first.
    pub(super) fn of(runs: &[JobRun]) -> Self {
        let ended_at = |run: &JobRun| (run.id.clone(), run.finished_at.unwrap_or(run.created_at));
        let succeeded = || runs.iter().filter(|run| run.state == State::Finished);
        let failed = || runs.iter().filter(|run| run.state.is_failure());
        let mut seconds: Vec<f64> = succeeded().filter_map(JobRun::seconds).collect();
        seconds.sort_by(f64::total_cmp);
        Self {
            succeeded: succeeded().count(),
            failed: failed().count(),
            last_success: succeeded().next().map(ended_at),
            last_failure: failed().next().map(ended_at),
            usual_failure: usual(failed()),
            median_seconds: quantile(&seconds, 0.5),
            p90_seconds: quantile(&seconds, 0.9),
            next_expected_at: next(runs),
        }
    }

    /// Returns the share of runs that succeeded, of those that ended without being killed.
    pub fn success_rate(&self) -> Option<f64> {
        let all = self.succeeded + self.failed;
        (all > 0).then(|| self.succeeded as f64 / all as f64)
    }
}

/// Returns a quantile of sorted numbers, by the nearest rank.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Returns the most frequent code; of two that are as frequent, the one that came last.
fn usual<'a>(failed: impl Iterator<Item = &'a JobRun>) -> Option<UsualFailure> {
    let mut found: Vec<UsualFailure> = Vec::new();
    for run in failed {
        let (reason, message) = (run.reason.as_deref(), run.message.as_deref());
        let Some(code) = FailureCode::for_end(run.state, run.exit_code, reason, message) else { continue };
        match found.iter_mut().find(|one| one.code == code) {
            Some(one) => one.count += 1,
            None => found.push(UsualFailure { code, count: 1, message: run.message.clone() }),
        }
    }
    let most = found.iter().map(|one| one.count).max()?;
    found.into_iter().find(|one| one.count == most)
}

/// Returns when the next run is expected: the median time after the last one, if most times between runs are near their median.
fn next(runs: &[JobRun]) -> Option<DateTime<Utc>> {
    let times = runs.iter().zip(runs.iter().skip(1));
    let between: Vec<f64> =
        times.map(|(later, earlier)| (later.created_at - earlier.created_at).num_seconds() as f64).collect();
    if between.len() < LEAST_INTERVALS {
        return None;
    }
    let mut sorted = between.clone();
    sorted.sort_by(f64::total_cmp);
    let median = quantile(&sorted, 0.5)?;
    let near = (median * NEAR).max(NEAR_SECONDS);
    let regular = between.iter().filter(|time| (**time - median).abs() <= near).count();
    let is_regular = median >= NEAR_SECONDS && regular as f64 >= REGULAR * between.len() as f64;
    is_regular.then(|| runs.first().map(|run| run.created_at + TimeDelta::seconds(median as i64))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a run that was submitted this many minutes after midnight and took `seconds`.
    fn run(minutes: i64, state: State, seconds: i64) -> JobRun {
        let created_at = "2026-01-02T00:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::minutes(minutes);
        JobRun {
            id: format!("driver-20260102000000-{minutes:04}").parse().unwrap(),
            number: minutes,
            state,
            attempt: 1,
            exit_code: (state == State::Failed).then_some(1),
            reason: None,
            message: Some(format!("at {minutes}")),
            principal: "corp:alice".to_owned(),
            created_at,
            started_at: Some(created_at),
            finished_at: state.is_terminal().then(|| created_at + TimeDelta::seconds(seconds)),
        }
    }

    fn history(runs: &[(i64, State, i64)]) -> JobHistory {
        let mut runs: Vec<JobRun> =
            runs.iter().map(|(minutes, state, seconds)| run(*minutes, *state, *seconds)).collect();
        runs.reverse();
        JobHistory::of(&runs)
    }

    #[test]
    fn runs_tell_how_often_a_job_succeeds_how_long_it_takes_and_why_it_fails() {
        use State::{Error, Failed, Finished, Killed, Running};
        let history = history(&[
            (0, Finished, 10),
            (1, Failed, 99),
            (2, Finished, 20),
            (3, Failed, 99),
            (4, Error, 0),
            (5, Finished, 90),
            (6, Killed, 99),
            (7, Running, 0),
        ]);
        assert_eq!((history.succeeded, history.failed, history.success_rate()), (3, 3, Some(0.5)));
        assert_eq!((history.median_seconds, history.p90_seconds), (Some(20.0), Some(90.0)));
        let usual = history.usual_failure.unwrap();
        assert_eq!((usual.code, usual.count), (FailureCode::ApplicationError, 2));
        assert_eq!(usual.message.as_deref(), Some("at 3"));
        assert_eq!(history.last_success.unwrap().0.as_str(), "driver-20260102000000-0005");
        assert_eq!(history.last_failure.unwrap().0.as_str(), "driver-20260102000000-0004");
        assert_eq!(JobHistory::of(&[]), JobHistory::default());
        assert_eq!(JobHistory::default().success_rate(), None);
    }

    #[test]
    fn the_next_run_is_expected_if_most_come_at_regular_times() {
        let at = |minutes: &[i64]| {
            let runs: Vec<_> = minutes.iter().map(|minutes| (*minutes, State::Finished, 1)).collect();
            history(&runs).next_expected_at.map(|at| at.to_rfc3339())
        };
        let hourly = Some("2026-01-02T06:01:00+00:00".to_owned());
        assert_eq!(at(&[0, 60, 121, 180, 240, 301]), hourly);
        assert_eq!(at(&[0, 60, 121, 180, 210, 240, 301]), None, "two of six times are others");
        assert_eq!(
            at(&[0, 60, 120, 180, 185, 240, 300, 360, 420, 480, 540, 600]).as_deref(),
            Some("2026-01-02T11:00:00+00:00")
        );
        assert_eq!(at(&[0, 60, 120, 180, 240]), None, "four times are no habit");
        assert_eq!(at(&[0, 0, 0, 0, 0, 0, 0]), None, "a burst");
    }
}
