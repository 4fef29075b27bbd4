//! Launches that a queue outside of the database holds back.

use std::time::Duration;

use super::{
    claim::{Claimed, LONGEST_PAUSE, UNCLAIMED},
    error::{Error, within},
    store::Store,
};
use sparkgate_submission::{SubmissionId, kept};

impl Store {
    /// Returns the claim of a launch that a queue holds back, so that the queue is asked again after `delay`, or when
    /// [`Store::ask_again`] is called. It is no failed try. The start timeout begins when the queue is asked again: its time doesn't
    /// pass while the queue holds the launch.
    pub async fn hold(&self, claimed: &Claimed, delay: Duration, reason: &str, why: &str) -> Result<(), Error> {
        let due = format!("clock_timestamp() + make_interval(secs => least($3, {LONGEST_PAUSE}))");
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE submissions SET claimed_by = {UNCLAIMED}, failed_tries = 0,
                    not_before = CASE WHEN state = 'LAUNCHING' THEN {due} END,
                    deadline = CASE WHEN state = 'LAUNCHING' THEN {due} + make_interval(secs => start_timeout) ELSE deadline END,
                    reason = CASE WHEN state = 'LAUNCHING' THEN $4 ELSE reason END,
                    message = CASE WHEN state = 'LAUNCHING' THEN $5 ELSE message END
             WHERE id = $1 AND claim_epoch = $2",
        )))
        .bind(claimed.id.as_str())
        .bind(claimed.epoch)
        .bind(delay.as_secs_f64())
        .bind(reason)
        .bind(kept(why))
        .execute(&self.patient);
        within("returning the claim of a launch that a queue holds", statement).await?;
        Ok(())
    }

    /// Ends the pause of a launch that a queue holds back. Returns whether there was one.
    pub async fn ask_again(&self, id: &SubmissionId, attempt: i32) -> Result<bool, Error> {
        let statement = sqlx::query(
            "UPDATE submissions SET not_before = NULL
             WHERE id = $1 AND attempt = $2 AND state = 'LAUNCHING' AND pod_uid IS NULL AND not_before > clock_timestamp()",
        )
        .bind(id.as_str())
        .bind(attempt)
        .execute(&self.patient);
        Ok(within("ending the pause of a launch", statement).await?.rows_affected() > 0)
    }
}
