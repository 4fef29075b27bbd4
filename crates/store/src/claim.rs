//! Claims: which replica may change a submission's objects.

use std::{collections::BTreeMap, time::Duration};

use sqlx::types::Json;
use uuid::Uuid;

use super::{
    error::{Error, within},
    lease::ALIVE,
    row::{kill_cause, parse},
    sealed::{Sealed, UNCLAIMED_SEALED},
    state_log::LoggedChange,
    store::Store,
    unadmitted::{CLAIMABLE, UNADMITTED, queue_rank},
};
use sparkgate_submission::{KillCause, State, SubmissionId, kept};

/// Maximum number of failed tries that an outage adds, so that a later failure of another kind doesn't look like an old one.
const COUNTED_IN_AN_OUTAGE: i32 = 5;
/// A row that can't be read is tried again after this time: a newer release may be able to read it.
const UNREADABLE: Duration = Duration::from_secs(600);

/// Maximum time in seconds by which a row is postponed. A row that is postponed by more was postponed before the clock of the
/// database went back, and is due.
pub(super) const LONGEST_PAUSE: u32 = 15 * 60;

/// `claimed_by` of an unclaimed row with a second or later attempt: a session that never exists. To a release that knows one
/// attempt only, and would launch that one again, the row looks claimed.
pub(super) const UNCLAIMED_NOW: &str = "'00000000-0000-0000-0000-000000000000'::uuid";
/// `claimed_by` of any unclaimed row.
pub(super) const UNCLAIMED: &str = "CASE WHEN sealed THEN '00000000-0000-0000-0000-000000000001'::uuid
    WHEN attempt > 1 THEN '00000000-0000-0000-0000-000000000000'::uuid END";

/// The work that a claimed submission needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Launch,
    Kill,
}

/// A submission that only one replica may work on, while its lease lasts and until it returns the claim.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub id: SubmissionId,
    /// The position in the order of acceptance.
    pub number: i64,
    pub attempt: i32,
    pub task: Task,
    pub tenant: String,
    pub namespace: String,
    /// The queue of the access file that admitted it.
    pub queue: Option<String>,
    /// The name of the driver pod.
    pub pod: String,
    /// The objects to create, as JSON. `None` if they have yet to be derived from those of the previous attempt, and for a row
    /// of a release that didn't store them.
    pub manifest: Option<String>,
    /// For a launch: the same with their secrets. The others are without them then.
    pub sealed: Option<Sealed>,
    /// The driver pod that an earlier try created; no other is ever created for this attempt.
    pub pod_uid: Option<String>,
    /// The number of the claim: writes with an older one change nothing.
    pub epoch: i64,
    /// Consecutive failed tries before this one.
    pub failed_tries: i32,
    /// The cause, if the submission is being killed.
    pub kill: KillCause,
    /// Seconds between SIGTERM and SIGKILL of a killed driver; those of its pod if `None`.
    pub kill_grace: Option<i32>,
    /// The trace that it belongs to, if there is one.
    pub trace: Option<String>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    number: i64,
    attempt: i32,
    state: String,
    namespace: String,
    queue: Option<String>,
    pod: String,
    objects: Option<String>,
    sealed: Option<Vec<u8>>,
    sealed_key: Option<String>,
    pod_uid: Option<String>,
    claim_epoch: i64,
    failed_tries: i32,
    kill_cause: Option<String>,
    message: Option<String>,
    kill_grace: Option<i32>,
    tenant: String,
    was: String,
    trace_context: Option<String>,
}

impl TryFrom<Row> for Claimed {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let state: State = parse(&row.id, &row.state)?;
        Ok(Self {
            id: parse(&row.id, &row.id)?,
            number: row.number,
            attempt: row.attempt,
            task: if state == State::Killing { Task::Kill } else { Task::Launch },
            tenant: row.tenant,
            namespace: row.namespace,
            queue: row.queue,
            pod: row.pod,
            manifest: row.objects,
            sealed: row.sealed_key.zip(row.sealed).map(|(key, text)| Sealed { key, text }),
            pod_uid: row.pod_uid,
            epoch: row.claim_epoch,
            failed_tries: row.failed_tries,
            kill: kill_cause(&row.id, row.kill_cause.as_deref(), row.message)?,
            kill_grace: row.kill_grace,
            trace: row.trace_context,
        })
    }
}

/// How many submissions may be claimed, and of whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// At most so many.
    pub all: i64,
    /// The slots that are free. A namespace may take one of them as long as it and its tenant together hold fewer than twice as many
    /// as are free.
    pub free: i64,
    /// The slots that each namespace holds.
    pub held: BTreeMap<String, i64>,
    /// The slots that each tenant holds.
    pub held_by_tenant: BTreeMap<String, i64>,
    /// Namespaces of which nothing may be claimed.
    pub closed: Vec<String>,
    /// Namespaces of which only one submission may be claimed: the next one after that number, or the first.
    pub one: Vec<(String, i64)>,
}

impl Room {
    /// Returns room for up to `all` submissions of any namespace.
    pub fn of(all: i64) -> Self {
        Self { all, free: i32::MAX.into(), ..Self::default() }
    }
}

/// Returns the condition for the lease that a claim needs. Only a lease that is seen to have expired frees a claim: one that
/// isn't seen may be newer than this statement.
fn ours() -> String {
    format!("ours AS (SELECT FROM leases WHERE holder = $1 AND name = 'replica/' || $1::text AND {ALIVE})")
}

/// Returns the condition for rows that are due in one of the namespaces `$4`, and not among `$3`.
fn is_due() -> String {
    format!(
        "{CLAIMABLE}
                  AND (claimed_by IS NULL OR claimed_by = $1 OR claimed_by = {UNCLAIMED_NOW} OR claimed_by = {UNCLAIMED_SEALED}
                      OR claimed_by = {UNADMITTED} OR claimed_by IN
                      (SELECT holder FROM leases WHERE name LIKE 'replica/%' AND NOT {ALIVE}))
                  AND (not_before IS NULL OR not_before <= clock_timestamp()
                      OR not_before > clock_timestamp() + make_interval(secs => {LONGEST_PAUSE}))
                  AND (state = 'KILLING' OR $4::text[] = '{{}}' OR namespace = ANY ($4))
                  AND id <> ALL ($3)"
    )
}

/// Returns the share of `all` of each row of `from`, a namespace: the same for each tenant, and of that for each of its namespaces.
fn share(all: &str, from: &str) -> String {
    format!(
        "greatest(ceil(({all})::numeric / (SELECT count(DISTINCT tenant) FROM {from}) / count(*) OVER (PARTITION BY tenant)), 0)::bigint"
    )
}

/// Claims the rows in `due`.
const TAKE: &str = "claimed AS (
        UPDATE submissions s
        SET claimed_by = $1, claim_epoch = greatest(s.claim_epoch + 1, (SELECT lowest_claim_epoch())),
            state = CASE s.state WHEN 'QUEUED' THEN 'LAUNCHING' ELSE s.state END
        FROM due WHERE s.id = due.id
        RETURNING s.id, s.number, s.attempt, s.state, s.namespace, s.queue, s.names, s.pod_uid, s.claim_epoch, s.failed_tries,
            s.kill_cause, s.message, s.kill_grace, s.tenant, s.trace_context, due.was
    ), logged AS (
        INSERT INTO submission_events (submission_id, attempt, state)
        SELECT id, attempt, state FROM claimed WHERE was = 'QUEUED'
    )
    SELECT id, number, claimed.attempt, state, namespace, queue, coalesce(names ->> 'driverPod', '') AS pod, m.objects,
           CASE WHEN state <> 'KILLING' THEN m.sealed END AS sealed, m.sealed_key, pod_uid,
           claim_epoch, failed_tries, kill_cause, message, kill_grace, tenant, trace_context, was
    FROM claimed LEFT JOIN manifests m ON m.submission_id = id AND m.attempt = claimed.attempt ORDER BY number";

/// Returns the statement of [`Store::claim_within`], which binds its parameters in their order.
fn statement() -> String {
    let (is_due, ours) = (is_due(), ours());
    let (even, rest) =
        (share("$2 - (SELECT count(*) FROM the_ones)", "open"), share("$2 - (SELECT n FROM taken)", "deep"));
    // A plan that was made for an empty table may read all rows for the ones, so that part runs only if there are any.
    // The first read gives each namespace an even share. What some don't need, the second one gives to those that have more.
    format!(
        "WITH RECURSIVE {ours}, here (namespace, tenant) AS (
                (SELECT namespace, tenant FROM submissions WHERE {CLAIMABLE}
                 ORDER BY namespace, number LIMIT 1)
                UNION ALL
                SELECT next.namespace, next.tenant FROM here CROSS JOIN LATERAL (
                    SELECT namespace, tenant FROM submissions
                    WHERE {CLAIMABLE} AND namespace > here.namespace
                    ORDER BY namespace, number LIMIT 1) AS next
            ), the_ones AS MATERIALIZED (
                SELECT id, state FROM submissions WHERE cardinality($8::text[]) > 0 AND id = ANY (ARRAY(
                    SELECT id FROM unnest($8::text[], $9::bigint[]) AS one (namespace, after), LATERAL (
                        (SELECT id, number, true AS is_next FROM submissions
                         WHERE namespace = one.namespace AND number > one.after AND {is_due} ORDER BY number LIMIT 1)
                        UNION ALL
                        (SELECT id, number, false FROM submissions
                         WHERE namespace = one.namespace AND number <= one.after AND {is_due} ORDER BY number LIMIT 1)
                        ORDER BY is_next DESC LIMIT 1) AS the_one
                    ORDER BY number LIMIT $2))
                  AND {is_due} AND EXISTS (SELECT FROM ours)
                FOR UPDATE SKIP LOCKED
            ), open AS MATERIALIZED (
                SELECT namespace, tenant, coalesce(($5::jsonb ->> namespace)::bigint, 0)
                    + coalesce(($6::jsonb ->> tenant)::bigint, 0) AS held
                FROM here WHERE namespace <> ALL ($7) AND namespace <> ALL ($8)
            ), first AS MATERIALIZED (
                SELECT share.*, found.* FROM (SELECT *, {even} AS most FROM open) AS share CROSS JOIN LATERAL (
                    SELECT id, number, state FROM submissions
                    WHERE namespace = share.namespace AND {is_due} AND EXISTS (SELECT FROM ours)
                    ORDER BY number LIMIT share.most FOR UPDATE SKIP LOCKED) AS found
            ), taken AS MATERIALIZED (
                SELECT (SELECT count(*) FROM first) + (SELECT count(*) FROM the_ones) AS n
            ), deep AS MATERIALIZED (
                SELECT namespace, tenant, held, max(number) AS last FROM first GROUP BY namespace, tenant, held
                HAVING count(*) = max(most)
            ), more AS MATERIALIZED (
                SELECT share.*, found.* FROM (SELECT *, {rest} AS most FROM deep) AS share CROSS JOIN LATERAL (
                    SELECT id, number, state FROM submissions
                    WHERE namespace = share.namespace AND number > share.last AND {is_due}
                    ORDER BY number LIMIT share.most FOR UPDATE SKIP LOCKED) AS found
            ), in_namespace AS (
                SELECT *, row_number() OVER (PARTITION BY namespace ORDER BY number) AS nth FROM (
                    SELECT id, state, number, namespace, tenant, held FROM first
                    UNION ALL SELECT id, state, number, namespace, tenant, held FROM more) AS found
            ), in_tenant AS (
                SELECT *, row_number() OVER (PARTITION BY tenant ORDER BY nth, random()) AS turn FROM in_namespace
            ), in_all AS (
                SELECT *, (SELECT count(*) FROM the_ones) + row_number() OVER (ORDER BY turn, random()) AS place FROM in_tenant
            ), due AS (
                SELECT id, state AS was FROM the_ones
                UNION ALL
                SELECT id, state FROM in_all WHERE place <= $2 AND held + nth + turn - 2 < 2 * ($10 - place + 1)
            ), {TAKE}"
    )
}

impl Store {
    /// Claims up to `limit` submissions, as [`Store::claim_within`] does.
    pub async fn claim(
        &self,
        session: Uuid,
        limit: i64,
        namespaces: &[String],
        busy: &[SubmissionId],
    ) -> Result<Vec<Claimed>, Error> {
        self.claim_within(session, &Room::of(limit), namespaces, busy).await
    }

    /// Claims submissions that wait for a launch in one of `namespaces` (empty means all) or for a kill, for a session with a valid
    /// lease; without one it claims nothing. Tenants take turns, and so do the namespaces of a tenant; of a namespace, the oldest
    /// submission is the first. If there are more tenants than places, lots decide. A tenant is that of the oldest row of a namespace.
    ///
    /// A claim of a session whose lease has expired is free. So is a claim of this very session that it doesn't know of, because an
    /// earlier reply may have been lost, except for `busy`, the submissions that this process still works on. A queued row becomes
    /// `LAUNCHING` here, before anything of it is created. A row that can't be read is logged and postponed, so that it never stops
    /// the others.
    ///
    /// Rows are found namespace by namespace: however many a namespace has, about as many are read as are claimed.
    pub async fn claim_within(
        &self,
        session: Uuid,
        room: &Room,
        namespaces: &[String],
        busy: &[SubmissionId],
    ) -> Result<Vec<Claimed>, Error> {
        let (after, one): (Vec<_>, Vec<_>) = room.one.iter().map(|(name, number)| (*number, name.clone())).unzip();
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(statement()))
            .bind(session)
            .bind(room.all)
            .bind(busy.iter().map(SubmissionId::as_str).collect::<Vec<_>>())
            .bind(namespaces)
            .bind(Json(&room.held))
            .bind(Json(&room.held_by_tenant))
            .bind(&room.closed)
            .bind(one)
            .bind(after)
            .bind(room.free)
            .fetch_all(&self.patient);
        self.claimed(within("claiming submissions", statement).await?).await
    }

    async fn claimed(&self, rows: Vec<Row>) -> Result<Vec<Claimed>, Error> {
        let mut claimed = Vec::with_capacity(rows.len());
        for row in rows {
            if row.was != row.state {
                let Row { id, tenant, attempt, was, state, .. } = &row;
                let (attempt, from) = (*attempt, Some(was.as_str()));
                LoggedChange { submission: id, tenant, attempt, from, state, ..LoggedChange::default() }.log();
            }
            let id = row.id.clone();
            match Claimed::try_from(row) {
                Ok(one) => claimed.push(one),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, retry_in = ?UNREADABLE, "submission skipped: its row can't be read");
                    self.put_off(&id).await?;
                }
            }
        }
        Ok(claimed)
    }

    async fn put_off(&self, id: &str) -> Result<(), Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE submissions SET claimed_by = {UNCLAIMED}, not_before = clock_timestamp() + make_interval(secs => $2)
             WHERE id = $1",
        )))
        .bind(id)
        .bind(UNREADABLE.as_secs_f64())
        .execute(&self.patient);
        within("postponing a submission", statement).await?;
        Ok(())
    }

    /// Returns the claims of a session that it doesn't know of, because the reply to a claim was lost: all except for `busy`,
    /// the submissions that this process works on. A session that claims nothing would keep them as long as it lives.
    pub async fn give_back_unknown(&self, session: Uuid, busy: &[SubmissionId]) -> Result<(), Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE submissions SET claimed_by = {UNCLAIMED} WHERE id IN (
                 SELECT id FROM submissions
                 WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING') AND claimed_by = $1 AND id <> ALL ($2)
                 FOR UPDATE SKIP LOCKED)",
        )))
        .bind(session)
        .bind(busy.iter().map(SubmissionId::as_str).collect::<Vec<_>>())
        .execute(&self.patient);
        within("returning claims whose reply was lost", statement).await?;
        Ok(())
    }

    /// Returns a claim after work that succeeded. A claim that was lost remains with its new holder.
    pub async fn release(&self, claimed: &Claimed) -> Result<(), Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE submissions SET claimed_by = {UNCLAIMED}, not_before = NULL, failed_tries = 0
             WHERE id = $1 AND claim_epoch = $2",
        )))
        .bind(claimed.id.as_str())
        .bind(claimed.epoch)
        .execute(&self.patient);
        within("releasing a claim", statement).await?;
        Ok(())
    }

    /// Returns a claim so that the work is repeated after `delay`, at most 15 minutes. With `why`, a reason (one word,
    /// optional) and a message, it counts as a failed try and is visible to users, unless the submission has ended in the
    /// meantime, or is being killed after a timeout, whose message is its outcome. A requested kill doesn't wait for a
    /// postponed launch.
    pub async fn retry_later(
        &self,
        claimed: &Claimed,
        delay: Duration,
        why: Option<(Option<&str>, &str)>,
    ) -> Result<(), Error> {
        self.give_back(claimed, delay, why, i32::MAX, (UNCLAIMED, "")).await
    }

    /// Returns a claim after a try that failed because the cluster gave no answer: only the first of these tries count.
    pub async fn retry_after_outage(&self, claimed: &Claimed, delay: Duration, why: &str) -> Result<(), Error> {
        self.give_back(claimed, delay, Some((None, why)), COUNTED_IN_AN_OUTAGE, (UNCLAIMED, "")).await
    }

    /// Returns a claim after a try for which there was no room: it isn't counted, and may be repeated at once. A submission in a queue
    /// waits for another admission, so that it takes no place while it can't run, unless its pod exists. Its start timeout goes on.
    pub async fn wait_for_room(&self, claimed: &Claimed, reason: &str, why: &str) -> Result<(), Error> {
        let returned = "(queue IS NOT NULL AND state = 'LAUNCHING' AND pod_uid IS NULL)";
        let rank = queue_rank("submissions");
        let readmit = format!(
            ", queue_rank = CASE WHEN {returned} THEN {rank} ELSE queue_rank END,
             admitted_at = CASE WHEN {returned} THEN NULL ELSE admitted_at END"
        );
        let unclaimed = format!("CASE WHEN {returned} THEN {UNADMITTED} ELSE {UNCLAIMED} END");
        self.give_back(claimed, Duration::ZERO, Some((Some(reason), why)), 0, (&unclaimed, &readmit)).await
    }

    async fn give_back(
        &self,
        claimed: &Claimed,
        delay: Duration,
        why: Option<(Option<&str>, &str)>,
        most: i32,
        (unclaimed, more): (&str, &str),
    ) -> Result<(), Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE submissions SET claimed_by = {unclaimed}{more},
                    not_before = CASE WHEN state <> 'KILLING' OR $5
                        THEN clock_timestamp() + make_interval(secs => least($3, {LONGEST_PAUSE})) END,
                    failed_tries = CASE WHEN $4::text IS NULL THEN 0 WHEN failed_tries < $7 THEN failed_tries + 1
                        ELSE failed_tries END,
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
        .bind(most)
        .execute(&self.patient);
        within("postponing a submission", statement).await?;
        Ok(())
    }
}
