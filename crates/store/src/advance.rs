//! Moves a submission forwards.

use super::{
    counted_ends::count_end,
    deadlines::started,
    error::{Error, within},
    figures::{AGE, WAITED},
    no_room::FOLLOWED,
    retry::{Permission, RESTARTED},
    row::words,
    sealed::{DROPPED, NEEDLESS},
    state_log::LoggedChange,
    store::Store,
    usage::ended,
};
use sparkgate_metrics::metrics;
use sparkgate_submission::{Placement, State, StateChange, SubmissionId, kept};

/// Returns the statement of [`Store::advance`], which binds its parameters in their order.
fn statement() -> String {
    let (started, since) = (started("$11::timestamptz", "s"), started("$16::timestamptz", "s"));
    let ended = ended("$17::timestamptz", &since, "s");
    format!(
        r#"
            WITH old AS (
                SELECT id, state AS was FROM submissions
                WHERE id = $1 AND attempt = $2 AND state = ANY($4) AND ($13::bigint IS NULL OR claim_epoch = $13)
                  AND ($8 IS NULL OR pod_uid IS NULL OR pod_uid = $8) AND ({RESTARTED}) IS NOT TRUE
                  AND ({FOLLOWED}) IS NOT TRUE
                FOR NO KEY UPDATE
            ), moved AS (
                UPDATE submissions s SET
                    state = $3, exit_code = $5, reason = $6, message = $7,
                    pod_uid = coalesce($8, pod_uid), node = coalesce($9, node), pod_ip = coalesce($10, pod_ip),
                    started_at = coalesce(started_at, {started}, CASE WHEN $3 = 'RUNNING' THEN clock_timestamp() END),
                    finished_at = CASE WHEN $12 THEN clock_timestamp() END,
                    pod_millicores = coalesce($14, pod_millicores), pod_memory_bytes = coalesce($15, pod_memory_bytes),
                    pod_since = coalesce(pod_since, {since}), pod_ended_at = CASE WHEN $12 THEN {ended} END,
                    deadline = CASE $3
                        WHEN 'PENDING' THEN deadline
                        WHEN 'RUNNING' THEN coalesce(started_at, {started}, clock_timestamp()) + make_interval(secs => run_timeout)
                    END
                FROM old WHERE s.id = old.id
                RETURNING s.id, attempt, tenant, was, {NEEDLESS} AS needless,
                    {WAITED} AS waited, {AGE} AS age
            ), {DROPPED}, logged AS (
                INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                SELECT id, attempt, $3, $6, $7 FROM moved
            )
            SELECT tenant, was, waited, age FROM moved
            "#
    )
}

impl Store {
    /// Moves the attempt to the state of `change` and writes the event, unless its row is in that state or beyond: a late or
    /// repeated call changes nothing, nor does an observation of another pod than the recorded one. If a claim is given, it
    /// must still be the current one. Returns whether the row moved.
    ///
    /// If another attempt is due after an end, the end concerns the attempt and not the submission: the row then waits for the
    /// launch of the next attempt.
    pub async fn advance(
        &self,
        id: &SubmissionId,
        attempt: i32,
        claim: Option<i64>,
        change: &StateChange,
        placement: &Placement,
    ) -> Result<bool, Error> {
        if let (StateChange::Launched, Some(claim), Some(uid)) = (change, claim, &placement.pod_uid) {
            return self.launched(id, attempt, claim, uid).await;
        }
        let to = change.state();
        // A reason against another attempt (the budget is used up, a kill was accepted) still holds in the second statement.
        if let Some(outcome) = change.outcome()
            && let Some(kind) = outcome.retry_kind()
            && self.retry(id, attempt, claim, outcome, Permission::Retry(kind), placement).await?
        {
            return Ok(true);
        }
        // A launch that ends during a kill must not undo it; `may_become` prevents that.
        let from = words(State::ALL.into_iter().filter(|from| from.may_become(to)));
        let outcome = change.outcome();
        let reservation = placement.reservation;
        let moved: Option<(String, String, f64, f64)> = within(
            "recording a submission's state",
            sqlx::query_as(sqlx::AssertSqlSafe(statement()))
                .bind(id.as_str())
                .bind(attempt)
                .bind(to.as_str())
                .bind(&from)
                .bind(outcome.and_then(|outcome| outcome.exit_code))
                .bind(outcome.and_then(|outcome| outcome.reason.as_deref()).map(kept))
                .bind(outcome.map(|outcome| kept(&outcome.message)))
                .bind(&placement.pod_uid)
                .bind(&placement.node)
                .bind(&placement.pod_ip)
                .bind(placement.started_at)
                .bind(to.is_terminal())
                .bind(claim)
                .bind(reservation.map(|reservation| reservation.millicores))
                .bind(reservation.map(|reservation| reservation.memory_bytes))
                .bind(reservation.and_then(|reservation| reservation.since))
                .bind(placement.ended_at)
                .fetch_optional(&self.patient),
        )
        .await?;
        let Some((tenant, was, waited, age)) = &moved else {
            // The statement leaves the ends that are followed by another attempt.
            let permission = match to {
                State::Finished | State::Failed | State::Lost => Permission::Restart,
                State::Killed => Permission::NoRoom,
                _ => return Ok(false),
            };
            return match outcome {
                Some(outcome) => self.retry(id, attempt, claim, outcome, permission, placement).await,
                None => Ok(false),
            };
        };
        let changed = LoggedChange {
            submission: id.as_str(),
            tenant,
            attempt,
            from: Some(was),
            state: to.as_str(),
            exit_code: outcome.and_then(|outcome| outcome.exit_code),
            reason: outcome.and_then(|outcome| outcome.reason.as_deref()),
            message: outcome.map(|outcome| outcome.message.as_str()),
        };
        changed.log();
        match outcome {
            Some(outcome) => {
                count_end(tenant, outcome);
                metrics().time_to_end.with([to.as_str()]).observe(*age);
            }
            None if to == State::Pending => metrics().time_to_pod.observe(*waited),
            None if to == State::Running => metrics().time_to_running.observe(*waited),
            None => {}
        }
        Ok(true)
    }

    /// Records why a driver that has not started still waits. Schedulers and kubelets retry with growing pauses, so this is
    /// written only as often as they report something new.
    pub async fn note_waiting(
        &self,
        id: &SubmissionId,
        attempt: i32,
        reason: &str,
        message: &str,
    ) -> Result<(), Error> {
        within(
            "recording why a driver waits",
            sqlx::query(
                "UPDATE submissions SET reason = $3, message = $4
             WHERE id = $1 AND attempt = $2 AND state IN ('LAUNCHING', 'PENDING')
               AND (reason, message) IS DISTINCT FROM ($3, $4)",
            )
            .bind(id.as_str())
            .bind(attempt)
            .bind(kept(reason))
            .bind(kept(message))
            .execute(&self.patient),
        )
        .await?;
        Ok(())
    }
}
