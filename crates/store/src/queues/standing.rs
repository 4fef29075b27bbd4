//! Where a submission stands in its queue: a part of its document.

use serde::Deserialize;
use sqlx::{Postgres, QueryBuilder};

use super::states::QueueState;
use crate::unadmitted::{HELD_RANK, IN_QUEUES, UNADMITTED};

/// How many submissions ahead of another one are counted.
const COUNTED: i64 = 10_000;
/// How many of the last admissions an estimate is made of.
const OBSERVED: i64 = 100;

/// Where a submission stands that waits for its admission.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueStanding {
    /// How many of its tenant are admitted before it; `None` if there are more than ten thousand.
    pub ahead: Option<u32>,
    /// The state of the queue, if it isn't its normal one.
    pub state: Option<QueueState>,
    /// The last admissions of its tenant in the queue.
    pub history: History,
}

/// Admissions of a tenant in a queue, during the last day.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct History {
    /// How many there were.
    pub admissions: u32,
    /// How long ago the first of them was, in seconds.
    pub seconds: f64,
    /// The standard deviation of the time between two of them, in seconds.
    pub deviation: f64,
}

impl History {
    /// The least number of admissions from which anything follows.
    const LEAST: u32 = 5;

    /// Estimates in how many seconds a submission with so many ahead of it is admitted, and the standard error of that. `None` if the
    /// history is too short.
    pub fn estimate(&self, ahead: u32) -> Option<(f64, f64)> {
        (self.admissions >= Self::LEAST).then(|| {
            let steps = f64::from(ahead) + 1.0;
            (steps * self.seconds / f64::from(self.admissions), steps.sqrt() * self.deviation)
        })
    }
}

/// The standing as one column: each column of a row costs, also if it is empty.
#[derive(Deserialize)]
pub(crate) struct StoredStanding {
    ahead: i64,
    state: Option<QueueState>,
    admissions: u32,
    seconds: Option<f64>,
    deviation: Option<f64>,
}

impl From<StoredStanding> for QueueStanding {
    fn from(stored: StoredStanding) -> Self {
        let StoredStanding { ahead, state, admissions, seconds, deviation } = stored;
        let (seconds, deviation) = (seconds.unwrap_or_default(), deviation.unwrap_or_default());
        let ahead = u32::try_from(ahead).ok().filter(|_| ahead <= COUNTED);
        Self { ahead, state, history: History { admissions, seconds, deviation } }
    }
}

/// Appends a join with the column `standing` of the row `s`, a [`StoredStanding`]. For a submission that doesn't wait in a queue, it reads nothing.
pub(crate) fn push_standing(query: &mut QueryBuilder<Postgres>) {
    query.push(format_args!(
        " LEFT JOIN LATERAL (
             SELECT jsonb_build_object('ahead', (SELECT count(*) FROM (
                     SELECT FROM submissions w WHERE {IN_QUEUES} AND w.queue = s.queue AND w.tenant = s.tenant
                       AND w.queue_rank < s.queue_rank LIMIT {COUNTED} + 1) AS before),
                 'state', (SELECT q.state FROM queue_states q WHERE q.queue = s.queue),
                 'admissions', admissions, 'seconds', observed_seconds, 'deviation', deviation) AS standing
             FROM (
                 SELECT count(*) AS admissions, stddev_samp(gap)::float8 AS deviation,
                     extract(epoch FROM clock_timestamp() - min(admitted_at))::float8 AS observed_seconds
                 FROM (
                     SELECT admitted_at, extract(epoch FROM lag(admitted_at) OVER (ORDER BY admitted_at DESC) - admitted_at) AS gap
                     FROM (SELECT admitted_at FROM queue_admissions a WHERE a.queue = s.queue AND a.tenant = s.tenant
                           ORDER BY admitted_at DESC LIMIT {OBSERVED}) AS last) AS gaps) AS history
             WHERE s.queue_rank < {HELD_RANK} AND s.claimed_by = {UNADMITTED}) AS standings ON true"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_needs_a_history() {
        let history = History { admissions: 10, seconds: 100.0, deviation: 3.0 };
        assert_eq!(history.estimate(0), Some((10.0, 3.0)));
        assert_eq!(history.estimate(3), Some((40.0, 6.0)));
        assert_eq!(History { admissions: 4, ..history }.estimate(0), None);
        assert_eq!(History::default().estimate(0), None);
    }
}
