//! The statement that admits submissions, and the reasons of those that wait.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::types::Json;
use uuid::Uuid;

use crate::{
    claim::UNCLAIMED,
    deadlines::IN_WORDS,
    error::{Error, within},
    kill::killed,
    lease::ALIVE,
    sealed::{DROPPED, NEEDLESS},
    state_log::{CHANGED, ChangedRow, LoggedChange},
    store::Store,
    unadmitted::{HELD_RANK, UNADMITTED, WAITS},
};
use sparkgate_submission::{KillCause, queues::QueueEvent};

/// For how long admissions are kept, for estimates.
const KEPT: &str = "interval '1 day'";

/// The reason of the event of an admission.
const ADMITTED: &str = QueueEvent::Admitted.as_str();
/// How many seconds a submission waits at least that gets an event: an admission at once is no news.
const NEWS: f64 = 5.0;

/// A submission that was admitted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Admission {
    pub id: String,
    pub number: i64,
    pub attempt: i32,
    pub queue: String,
    pub tenant: String,
    pub waited_seconds: f64,
    state: String,
}

impl Admission {
    /// Logs the event.
    fn log(&self) {
        let Self { id, tenant, attempt, state, .. } = self;
        let (from, reason) = (Some(state.as_str()), Some(ADMITTED));
        LoggedChange { submission: id, tenant, attempt: *attempt, from, state, reason, ..LoggedChange::default() }
            .log();
    }
}

impl Store {
    /// Admits submissions, by number and attempt, for a decision that was made for this version of rounds. `None` if it isn't the version
    /// any more, or if the session has lost the lease `lease`: the decision is void, and nothing is admitted.
    ///
    /// Those that were killed, held or changed otherwise in the meantime are left out. One that waited for seconds gets an event. The start
    /// timeout begins now, unless the attempt returned from a full quota. The lease is only read: a lock would let its renewal fail, and
    /// the version suffices for the caps.
    pub async fn admit(
        &self,
        (session, lease): (Uuid, &str),
        version: i64,
        picks: &[(i64, i32)],
    ) -> Result<Option<Vec<Admission>>, Error> {
        let (numbers, attempts): (Vec<_>, Vec<_>) = picks.iter().copied().unzip();
        // The order and the state are expressions, so that no plan reads all rows that wait by an index of them.
        let statement = format!(
            "WITH round AS MATERIALIZED (
                 SELECT version FROM queue_rounds WHERE version = $1
                   AND EXISTS (SELECT FROM leases WHERE name = $5 AND holder = $4 AND {ALIVE})
                 FOR UPDATE
             ), begun AS (
                 UPDATE queue_rounds SET version = queue_rounds.version + 1 FROM round RETURNING queue_rounds.version
             ), chosen AS MATERIALIZED (
                 SELECT id AS chosen_id, extract(epoch FROM clock_timestamp() - coalesce(queued_at, created_at))::float8 AS waited
                 FROM unnest($2::bigint[], $3::integer[]) AS pick (of_number, of_attempt)
                     JOIN submissions s ON s.number = of_number AND s.attempt = of_attempt
                 WHERE EXISTS (SELECT FROM round) AND state || '' IN ('QUEUED', 'LAUNCHING') AND claimed_by = {UNADMITTED} AND queue_rank < {HELD_RANK}
                 ORDER BY s.number + 0 FOR NO KEY UPDATE OF s SKIP LOCKED
             ), admitted AS (
                 UPDATE submissions s SET claimed_by = {UNCLAIMED}, admitted_at = clock_timestamp(), queue_rank = NULL,
                     queue_deadline = NULL, deadline = coalesce(deadline, clock_timestamp() + make_interval(secs => start_timeout)),
                     reason = NULL, message = NULL
                 FROM chosen WHERE s.id = chosen_id
                 RETURNING s.id, s.number, s.attempt, s.state, s.queue, s.tenant, greatest(waited, 0) AS waited_seconds
             ), logged AS (
                 INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                 SELECT id, attempt, state, '{ADMITTED}', 'admitted by queue ' || queue || ' after ' || round(waited_seconds) || 's'
                 FROM admitted WHERE waited_seconds >= {NEWS}
             ), kept AS (
                 INSERT INTO queue_admissions (queue, tenant, waited_seconds) SELECT queue, tenant, waited_seconds FROM admitted
             )
             SELECT (SELECT count(*) FROM begun) AS rounds, (SELECT coalesce(jsonb_agg(jsonb_build_object('id', id,
                 'number', number, 'attempt', attempt, 'queue', queue, 'tenant', tenant, 'waited_seconds', waited_seconds, 'state', state)
             ), '[]') FROM admitted)"
        );
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(version)
            .bind(numbers)
            .bind(attempts)
            .bind(session)
            .bind(lease)
            .fetch_one(&self.patient);
        let (rounds, admitted): (i64, Json<Vec<Admission>>) = within("admitting submissions", statement).await?;
        admitted.iter().filter(|one| one.waited_seconds >= NEWS).for_each(Admission::log);
        Ok((rounds > 0).then_some(admitted.0))
    }

    /// Writes why submissions wait: number, attempt, one word, and a sentence. Those that were admitted in the meantime are left out.
    pub async fn explain_waiting(&self, reasons: &[(i64, i32, &str, String)]) -> Result<(), Error> {
        let column = |text: fn(&(i64, i32, &str, String)) -> String| reasons.iter().map(text).collect::<Vec<_>>();
        let statement = format!(
            "WITH these AS MATERIALIZED (
                 SELECT id AS of_id, word, sentence
                 FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[]) AS reason (of_number, of_attempt, word, sentence)
                     JOIN submissions s ON s.number = of_number AND s.attempt = of_attempt
                 WHERE state || '' IN ('QUEUED', 'LAUNCHING') AND claimed_by = {UNADMITTED} AND queue_rank < {HELD_RANK}
                 ORDER BY s.number + 0 FOR NO KEY UPDATE OF s SKIP LOCKED
             )
             UPDATE submissions s SET reason = word, message = sentence FROM these WHERE s.id = of_id"
        );
        let statement = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(reasons.iter().map(|reason| reason.0).collect::<Vec<_>>())
            .bind(reasons.iter().map(|reason| reason.1).collect::<Vec<_>>())
            .bind(column(|reason| reason.2.to_owned()))
            .bind(column(|reason| reason.3.clone()))
            .execute(&self.patient);
        within("writing why submissions wait", statement).await?;
        Ok(())
    }

    /// Ends up to `limit` submissions whose time to wait in their queue is over, as a start timeout does. Nothing is overdue while the
    /// clock of the database is past `believed_until`. Returns how many there were.
    pub async fn end_overdue_waits(&self, limit: u32, believed_until: Option<DateTime<Utc>>) -> Result<u64, Error> {
        let killed = killed();
        let statement = format!(
            "WITH overdue AS (
                 SELECT id AS of_id, state AS was, queue_timeout AS seconds, queue AS of_queue,
                     coalesce(': ' || nullif(message, ''), '') AS waited_for
                 FROM submissions
                 WHERE queue_deadline <= now() AND ($3::timestamptz IS NULL OR now() <= $3) AND state IN ('QUEUED', 'LAUNCHING')
                   AND {WAITS}
                 ORDER BY queue_deadline LIMIT $1 FOR UPDATE SKIP LOCKED
             ), moved AS (
                 UPDATE submissions s SET {killed}, kill_cause = $2, reason = $2, queue_rank = NULL, queue_deadline = NULL,
                     message = 'not admitted by queue ' || of_queue || ' within ' || {IN_WORDS} || waited_for
                 FROM overdue WHERE s.id = of_id
                 RETURNING s.id, s.tenant, s.attempt, was, s.state, s.reason, s.message, {NEEDLESS} AS needless
             ), {DROPPED}, logged AS (
                 INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                 SELECT id, attempt, state, reason, message FROM moved
             )
             SELECT {CHANGED}"
        );
        let statement = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(i64::from(limit))
            .bind(KillCause::START_TIMEOUT)
            .bind(believed_until)
            .fetch_one(&self.patient);
        let moved: Json<Vec<ChangedRow>> = within("ending overdue waits", statement).await?;
        moved.iter().for_each(ChangedRow::record);
        Ok(moved.len() as u64)
    }

    /// Deletes up to `limit` admissions that are too old for estimates.
    pub async fn forget_admissions(&self, limit: u32) -> Result<u64, Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "DELETE FROM queue_admissions WHERE ctid = ANY (ARRAY(
                 SELECT ctid FROM queue_admissions WHERE admitted_at < now() - {KEPT} ORDER BY admitted_at LIMIT $1))"
        )))
        .bind(i64::from(limit))
        .execute(&self.patient);
        Ok(within("deleting old admissions", statement).await?.rows_affected())
    }
}
