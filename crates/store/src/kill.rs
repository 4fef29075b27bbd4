//! Kill requests and Spark's `clear`.
//!
//! These statements don't wait in the server for a row that another transaction has locked: they would hold the few connections
//! for requests meanwhile, and other requests would get none. They give the connection back and try again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use sqlx::{Postgres, QueryBuilder, Row, postgres::PgRow, types::Json};
use tokio::time::{Instant, sleep};

use super::{
    actor::Actor,
    audit::{Written, push_entries},
    claim::UNCLAIMED,
    counted_ends::count_kill,
    error::{Error, within},
    scope::Scope,
    scoped::Scoped,
    sealed::{DROPPED, NEEDLESS},
    session::REQUESTS,
    state_log::{CHANGED, ChangedRow, LoggedChange},
    submissions::{COLUMNS, Found},
};
use sparkgate_submission::{KillCause, State, SubmissionId};

const ACTION: &str = "recording a kill request";

/// The result of a kill request.
#[derive(Debug)]
pub struct KillAnswer {
    /// The submission has not ended yet, and will be killed.
    pub live: bool,
    /// The caller may kill this submission.
    pub allowed: bool,
    /// The submission after the request; `None` if no submission has this id.
    pub submission: Option<Found>,
}

/// Maximum number of submissions that one statement clears.
const ROUND: i64 = 5000;

/// Pause before the second try, doubled for each further one up to the maximum.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(160);

/// Paces the tries of a statement that does not wait for locked rows. They go on for as long as another statement would wait for
/// a lock.
struct Tries {
    until: Instant,
    pauses: ExponentialBackoff,
}

impl Tries {
    fn begin() -> Self {
        let pauses = ExponentialBuilder::new().with_min_delay(PAUSE).with_max_delay(PAUSE_MAX).without_max_times();
        Self { until: Instant::now() + REQUESTS.lock, pauses: pauses.build() }
    }

    /// Waits until another try is due. Returns `false` if there is no time for one.
    async fn another(&mut self) -> bool {
        match self.pauses.next().filter(|pause| Instant::now() + *pause <= self.until) {
            Some(pause) => sleep(pause).await,
            None => return false,
        }
        true
    }
}

/// Repeats a statement that fails at once if one of its rows is locked.
async fn until_unlocked<T, F>(statement: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut tries = Tries::begin();
    loop {
        match statement().await {
            Err(error) if error.is_contention() && tries.another().await => {}
            answer => return answer,
        }
    }
}

/// Returns the assignments of a kill to the row `s`, whose previous state is `was`: `KILLED` if nothing was created yet,
/// otherwise `KILLING` for a worker to carry out.
pub(super) fn killed() -> String {
    format!(
        "state = CASE was WHEN 'QUEUED' THEN 'KILLED' ELSE 'KILLING' END, not_before = NULL, deadline = NULL,
         -- Launched already: its launcher has nothing more to do.
         claimed_by = CASE WHEN was IN ('PENDING', 'RUNNING') THEN {UNCLAIMED} ELSE claimed_by END,
         finished_at = CASE was WHEN 'QUEUED' THEN clock_timestamp() END"
    )
}

/// Returns the message of a kill, which says who requested it.
fn message(actor: Option<&Actor>) -> String {
    let words = KillCause::Request.message();
    actor.map_or_else(|| words.to_owned(), |actor| format!("{words} of {}", actor.principal))
}

/// Logs the state change of a row that `try_kill` returned, if it made one.
fn log(row: &PgRow) {
    let Ok(Some(from)) = row.try_get::<Option<&str>, _>("was") else { return };
    let text = |name| row.try_get::<&str, _>(name).unwrap_or_default();
    let changed = LoggedChange {
        submission: text("id"),
        tenant: text("tenant"),
        attempt: row.try_get("attempt").unwrap_or_default(),
        from: Some(from),
        state: text("state"),
        reason: row.try_get("reason").ok(),
        ..LoggedChange::default()
    };
    changed.log();
}

impl Scoped {
    /// Requests the kill of one submission, if it is also in the scope `killable`: `KILLED` immediately if nothing was created
    /// yet, otherwise `KILLING` for a worker to carry out. The same statement returns the result, so no later failure can
    /// contradict it, and writes the entry of the audit if it is allowed.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if the connection broke after the statement was sent. A contention ([`Error::is_contention`]) if the
    /// row stays locked for two seconds.
    pub async fn request_kill(
        &self,
        id: &SubmissionId,
        killable: &Scope,
        actor: Option<&Actor>,
    ) -> Result<KillAnswer, Error> {
        until_unlocked(|| self.try_kill(id, killable, actor)).await
    }

    async fn try_kill(&self, id: &SubmissionId, killable: &Scope, actor: Option<&Actor>) -> Result<KillAnswer, Error> {
        let killed = killed();
        let mut query = QueryBuilder::<Postgres>::new("WITH found AS (SELECT ");
        query.push(COLUMNS).push(", ");
        killable.push_condition(&mut query, "s");
        query.push(" AS allowed FROM submissions s WHERE id = ").push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(format_args!(
            " FOR UPDATE NOWAIT
            ), live AS (
                SELECT id, state AS was FROM found
                WHERE state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING') AND allowed
            ), moved AS (
                UPDATE submissions s SET {killed}, no_room = NULL, kill_cause = "
        ));
        query.push_bind(KillCause::Request.reason()).push(", reason = ").push_bind(KillCause::Request.reason());
        query.push(", message = ").push_bind(message(actor)).push(format_args!(
            " FROM live WHERE s.id = live.id AND (was <> 'KILLING' OR s.no_room IS NOT NULL)
                RETURNING s.*, was, {NEEDLESS} AS needless
            ), {DROPPED}, logged AS (
                INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                SELECT id, attempt, state, reason, message FROM moved
            )",
        ));
        let entry = "SELECT tenant, id, 'allowed' AS verdict, state AS detail FROM found WHERE allowed";
        push_entries(&mut query, actor, "kill", entry);
        let written = self.store.written(actor);
        query.push(format_args!(
            " SELECT {COLUMNS}, true AS live, true AS allowed, was {written} FROM moved
            UNION ALL
            SELECT {COLUMNS}, EXISTS (SELECT FROM live), allowed, NULL {written} FROM found
            WHERE NOT EXISTS (SELECT FROM moved)"
        ));
        let mut connection = self.store.connection(ACTION).await?;
        let row = within(ACTION, query.build().fetch_optional(&mut *connection)).await.map_err(Error::after_sending)?;
        row.iter().for_each(log);
        let flag = |name| row.as_ref().and_then(|row| row.try_get(name).ok()).unwrap_or(false);
        let (live, allowed) = (flag("live"), flag("allowed"));
        match row.as_ref().map(|row| row.try_get::<Written, _>("written")).transpose() {
            Ok(written) => self.store.pass_on_entries(actor, written.flatten()),
            Err(error) => tracing::error!(
                error = &error as &dyn std::error::Error,
                "an entry of the audit can't be read: it is in the database"
            ),
        }
        let submission = row.map(|row| Found::read(id.clone(), &row));
        // One that had ended before isn't live.
        if let Some(Found { document: Ok(killed), .. }) = submission.as_ref().filter(|_| live)
            && killed.state == State::Killed
        {
            count_kill(&killed.tenant, Some(KillCause::REQUEST));
        }
        Ok(KillAnswer { live, allowed, submission })
    }

    /// Requests the kill of every live submission of the scope, and returns for how many it was the first request. Those whose rows are
    /// locked by other transactions delay no other.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if the connection broke after the statement was sent, or if rows stay locked for two seconds after
    /// others were killed.
    pub async fn request_kill_of_all(&self, actor: Option<&Actor>) -> Result<u64, Error> {
        let (mut killed, mut rest) = (0, None);
        let mut tries = None;
        loop {
            let round = self.try_kill_all(rest.as_deref(), actor).await.map_err(|error| error.after(killed > 0))?;
            killed += round.0;
            if round.1.is_empty() {
                return Ok(killed);
            }
            // Begins after the first round, which may take longer than the others wait.
            if !tries.get_or_insert_with(Tries::begin).another().await {
                return Err(Error::rows_locked(ACTION, round.1.len()).after(killed > 0));
            }
            rest = Some(round.1);
        }
    }

    /// Requests the kill of these submissions, or of all, unless their rows are locked. Returns how many, and the ids of those
    /// that are left.
    async fn try_kill_all(&self, these: Option<&[String]>, actor: Option<&Actor>) -> Result<(u64, Vec<String>), Error> {
        let killed = killed();
        let mut query =
            QueryBuilder::<Postgres>::new("WITH free AS (SELECT id, state AS was FROM submissions s WHERE ");
        self.push_live(&mut query, these);
        query.push(format_args!(
            " ORDER BY number FOR UPDATE SKIP LOCKED
            ), moved AS (
                UPDATE submissions s SET {killed}, no_room = NULL, kill_cause = "
        ));
        query.push_bind(KillCause::Request.reason()).push(", reason = ").push_bind(KillCause::Request.reason());
        query.push(", message = ").push_bind(message(actor)).push(format_args!(
            " FROM free WHERE s.id = free.id
                RETURNING s.id, s.tenant, s.attempt, was, s.state, s.reason, s.message, {NEEDLESS} AS needless
            ), {DROPPED}, logged AS (
                INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                SELECT id, attempt, state, reason, message FROM moved
            )",
        ));
        let entries = "SELECT tenant, id, 'allowed' AS verdict, state AS detail FROM moved";
        push_entries(&mut query, actor, "killall", entries);
        query.push(format_args!(" SELECT {CHANGED}, ARRAY(SELECT id FROM submissions s WHERE "));
        self.push_live(&mut query, these);
        query.push(" EXCEPT ALL SELECT id FROM free)").push(self.store.written(actor));
        let mut connection = self.store.connection(ACTION).await?;
        let round = query.build_query_as().fetch_one(&mut *connection);
        let (killed, rest, written): (Json<Vec<ChangedRow>>, Vec<String>, Written) =
            within(ACTION, round).await.map_err(Error::after_sending)?;
        killed.iter().for_each(ChangedRow::record);
        self.store.pass_on_entries(actor, written);
        Ok((killed.len() as u64, rest))
    }

    /// Appends the condition for live submissions of the scope, or for these of them. One of which only an attempt is being killed is
    /// live.
    fn push_live(&self, query: &mut QueryBuilder<Postgres>, these: Option<&[String]>) {
        query.push("state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')");
        query.push(" AND (state <> 'KILLING' OR no_room IS NOT NULL) AND ");
        self.scope.push_condition(query, "s");
        if let Some(these) = these {
            query.push(" AND id = ANY(").push_bind(these).push(")");
        }
    }

    /// Carries out Spark's `clear`: the status of Spark's protocol no longer returns ended submissions of the scope. Returns how
    /// many there were. Works in rounds, so that a million submissions don't make one endless statement.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if some may have been cleared.
    pub async fn clear_ended(&self, actor: Option<&Actor>) -> Result<u64, Error> {
        let (mut cleared, mut last) = (0, Some(i64::MIN));
        while let Some(from) = last {
            let count;
            (count, last) =
                until_unlocked(|| self.clear_round(from, actor)).await.map_err(|error| error.after(cleared > 0))?;
            cleared += count;
        }
        Ok(cleared)
    }

    /// Clears submissions after `from`. Returns how many, and the number of the last one unless the round was the last.
    async fn clear_round(&self, from: i64, actor: Option<&Actor>) -> Result<(u64, Option<i64>), Error> {
        let action = "clearing ended submissions";
        let mut query = QueryBuilder::<Postgres>::new("WITH these AS (SELECT id FROM submissions s WHERE number > ");
        query.push_bind(from).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(
            " AND cleared_at IS NULL AND state IN ('FINISHED', 'FAILED', 'KILLED', 'ERROR', 'LOST')
                     ORDER BY number LIMIT ",
        );
        query.push_bind(ROUND).push(
            " FOR NO KEY UPDATE NOWAIT
                 ), cleared AS (
                     UPDATE submissions s SET cleared_at = clock_timestamp() FROM these WHERE s.id = these.id
                     RETURNING number, tenant
                 )",
        );
        let entries =
            "SELECT tenant, NULL::text AS id, 'allowed' AS verdict, count(*) || ' ended submissions' AS detail
                       FROM cleared GROUP BY tenant";
        push_entries(&mut query, actor, "clear", entries);
        query.push(" SELECT count(*), max(number)").push(self.store.written(actor)).push(" FROM cleared");
        let mut connection = self.store.connection(action).await?;
        let round = query.build_query_as().fetch_one(&mut *connection);
        let (count, last, written): (i64, Option<i64>, Written) =
            within(action, round).await.map_err(Error::after_sending)?;
        self.store.pass_on_entries(actor, written);
        // After a round that isn't full, none is left, so no later round can fail.
        Ok((count.unsigned_abs(), last.filter(|_| count >= ROUND)))
    }
}
