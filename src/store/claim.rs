//! Claims: which replica may touch a submission's objects.

use std::time::Duration;

use uuid::Uuid;

use super::{
    Error, Store,
    error::within,
    lease::ALIVE,
    row::{kill_cause, parse},
};
use crate::submission::{KillCause, State, SubmissionId, kept};

/// A row that can't be read is looked at again after this: a newer release may be able to.
const UNREADABLE: Duration = Duration::from_secs(600);

/// Seconds for which a row is put off at the most. What would have to wait longer was put off before the clock of the database
/// went back, and is due.
pub(super) const LONGEST_PAUSE: u32 = 15 * 60;

/// `claimed_by` of a row of a second or later attempt that nobody has claimed: a session that there never is. To a release
/// that knows of one attempt only, and would launch that one again, the row is somebody else's.
pub(super) const NOBODY_NOW: &str = "'00000000-0000-0000-0000-000000000000'::uuid";
/// The same for any row.
pub(super) const NOBODY: &str = "CASE WHEN attempt > 1 THEN '00000000-0000-0000-0000-000000000000'::uuid END";

/// What a claimed submission needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Launch,
    Kill,
}

/// A submission that one replica alone may work on, as long as its lease lasts and until it gives the claim back.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub id: SubmissionId,
    pub attempt: i32,
    pub task: Task,
    pub namespace: String,
    /// The name of the driver pod.
    pub pod: String,
    /// The objects to create, as JSON. `None` if they are yet to be made of those of the attempt before, and for a row of a
    /// release that didn't keep them.
    pub manifest: Option<String>,
    /// The driver pod that an earlier try made; from then on no other is ever made for this attempt.
    pub pod_uid: Option<String>,
    /// Which claim this is: writes that name an older one change nothing.
    pub epoch: i64,
    /// Tries in a row that failed before this one.
    pub failed_tries: i32,
    /// Why it is being killed, if it is.
    pub kill: KillCause,
    /// Seconds that a killed driver has from SIGTERM to SIGKILL; those of its pod if there are none.
    pub kill_grace: Option<i32>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    attempt: i32,
    state: String,
    namespace: String,
    pod: String,
    objects: Option<String>,
    pod_uid: Option<String>,
    claim_epoch: i64,
    failed_tries: i32,
    kill_cause: Option<String>,
    message: Option<String>,
    kill_grace: Option<i32>,
}

impl TryFrom<Row> for Claimed {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let state: State = parse(&row.id, &row.state)?;
        Ok(Self {
            id: parse(&row.id, &row.id)?,
            attempt: row.attempt,
            task: if state == State::Killing { Task::Kill } else { Task::Launch },
            namespace: row.namespace,
            pod: row.pod,
            manifest: row.objects,
            pod_uid: row.pod_uid,
            epoch: row.claim_epoch,
            failed_tries: row.failed_tries,
            kill: kill_cause(&row.id, row.kill_cause.as_deref(), row.message)?,
            kill_grace: row.kill_grace,
        })
    }
}

impl Store {
    /// Claims up to `limit` submissions that wait for a launch in one of `namespaces` (none means all) or for a kill,
    /// oldest first, for a session whose lease holds; without one it claims nothing. A claim of a session whose lease ran
    /// out is free, and so is one of this very session that it knows nothing of, because an earlier answer may have got
    /// lost: but not `busy`, what this process still works on. A queued row becomes `LAUNCHING` here, before anything of
    /// it is created. A row that can't be read is put off and logged, so that it never stops the others.
    pub async fn claim(
        &self,
        session: Uuid,
        limit: i64,
        namespaces: &[String],
        busy: &[SubmissionId],
    ) -> Result<Vec<Claimed>, Error> {
        // Only a lease that is seen to have run out frees a claim: one that isn't seen may be younger than this statement.
        let rows: Vec<Row> = within(
            "claiming submissions",
            sqlx::query_as(sqlx::AssertSqlSafe(format!(
                r#"
            WITH ours AS (
                SELECT FROM leases
                WHERE holder = $1 AND name = 'replica/' || $1::text AND {ALIVE}
            ), due AS (
                SELECT id, state AS was FROM submissions
                WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING')
                  AND (claimed_by IS NULL OR claimed_by = $1 OR claimed_by = {NOBODY_NOW}
                      OR claimed_by IN
                      (SELECT holder FROM leases WHERE name LIKE 'replica/%' AND NOT {ALIVE}))
                  AND (not_before IS NULL OR not_before <= clock_timestamp()
                      OR not_before > clock_timestamp() + make_interval(secs => {LONGEST_PAUSE}))
                  AND (state = 'KILLING' OR $4::text[] = '{{}}' OR namespace = ANY ($4))
                  AND id <> ALL ($3)
                  AND EXISTS (SELECT FROM ours)
                ORDER BY number LIMIT $2
                FOR UPDATE SKIP LOCKED
            ), claimed AS (
                UPDATE submissions s
                SET claimed_by = $1, claim_epoch = s.claim_epoch + 1,
                    state = CASE s.state WHEN 'QUEUED' THEN 'LAUNCHING' ELSE s.state END
                FROM due WHERE s.id = due.id
                RETURNING s.id, s.number, s.attempt, s.state, s.namespace, s.names, s.pod_uid, s.claim_epoch, s.failed_tries,
                    s.kill_cause, s.message, s.kill_grace, due.was
            ), logged AS (
                INSERT INTO submission_events (submission_id, attempt, state)
                SELECT id, attempt, state FROM claimed WHERE was = 'QUEUED'
            )
            SELECT id, claimed.attempt, state, namespace, coalesce(names ->> 'driverPod', '') AS pod, m.objects, pod_uid,
                   claim_epoch, failed_tries, kill_cause, message, kill_grace
            FROM claimed LEFT JOIN manifests m ON m.submission_id = id AND m.attempt = claimed.attempt ORDER BY number
            "#
            )))
            .bind(session)
            .bind(limit)
            .bind(busy.iter().map(SubmissionId::as_str).collect::<Vec<_>>())
            .bind(namespaces)
            .fetch_all(&self.patient),
        )
        .await?;
        let mut claimed = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.id.clone();
            match Claimed::try_from(row) {
                Ok(one) => claimed.push(one),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, retry_in = ?UNREADABLE, "skipping a submission");
                    self.put_off(&id).await?;
                }
            }
        }
        Ok(claimed)
    }

    async fn put_off(&self, id: &str) -> Result<(), Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE submissions SET claimed_by = {NOBODY}, not_before = clock_timestamp() + make_interval(secs => $2)
             WHERE id = $1",
        )))
        .bind(id)
        .bind(UNREADABLE.as_secs_f64())
        .execute(&self.patient);
        within("putting a submission off", statement).await?;
        Ok(())
    }

    /// Gives a claim back after work that succeeded. A claim that was lost stays with whoever has it.
    pub async fn release(&self, claimed: &Claimed) -> Result<(), Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE submissions SET claimed_by = {NOBODY}, not_before = NULL, failed_tries = 0
             WHERE id = $1 AND claim_epoch = $2",
        )))
        .bind(claimed.id.as_str())
        .bind(claimed.epoch)
        .execute(&self.patient);
        within("releasing a claim", statement).await?;
        Ok(())
    }

    /// Gives a claim back to be looked at again after `delay`, a quarter of an hour at the most; with a reason (one word, if
    /// there is one) and a message it counts as a failed try and a user sees
    /// it, unless the submission has ended meanwhile, or is killed after a time whose words are its outcome. A kill that
    /// was asked for doesn't wait for a launch that is put off.
    pub async fn retry_later(
        &self,
        claimed: &Claimed,
        delay: Duration,
        why: Option<(Option<&str>, &str)>,
    ) -> Result<(), Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE submissions SET claimed_by = {NOBODY},
                    not_before = CASE WHEN state <> 'KILLING' OR $5
                        THEN clock_timestamp() + make_interval(secs => least($3, {LONGEST_PAUSE})) END,
                    failed_tries = CASE WHEN $4::text IS NULL THEN 0 ELSE failed_tries + 1 END,
                    reason = CASE WHEN state = 'LAUNCHING' AND $4::text IS NOT NULL THEN $6 ELSE reason END,
                    message = CASE WHEN finished_at IS NULL AND coalesce(kill_cause, 'Killed') = 'Killed'
                        THEN coalesce($4, message) ELSE message END
             WHERE id = $1 AND claim_epoch = $2",
        )))
        .bind(claimed.id.as_str())
        .bind(claimed.epoch)
        .bind(delay.as_secs_f64())
        .bind(why.map(|(_, message)| kept(message)))
        .bind(claimed.task == Task::Kill)
        .bind(why.and_then(|(reason, _)| reason))
        .execute(&self.patient);
        within("putting a submission off", statement).await?;
        Ok(())
    }
}
