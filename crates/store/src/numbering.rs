//! Numbers events, in the order in which all changes are sent: events are numbered after their commit, by one transaction after
//! another. So a reader that continues after a number misses none (`docs/internals/event-feed.md`).

mod horizon;

use futures::TryStreamExt;
use sqlx::{Either, Row as _};

use self::horizon::Seen;
use super::{
    error::{Error, within},
    lost_numbers::LostNumbers,
    row::ends,
    store::Store,
};

pub use self::horizon::Horizon;

/// Key of the advisory lock under which events are numbered: "spkevent" as a number, nothing more.
const LOCK: i64 = 0x7370_6b65_7665_6e74;
/// Maximum number of events that one transaction numbers.
pub const NUMBERED_AT_ONCE: u64 = 1000;
/// The distance from the last number to the first one in another history: more numbers than can have been lost.
const SKIPPED: i64 = 1_000_000_000;

/// How far events are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// The highest number that was assigned; 0 before the first.
    pub last: i64,
    /// Some committed events have no number yet.
    pub more: bool,
    /// The database has another history than its numbers, which are to be continued in it.
    pub is_new_history: bool,
    /// The numbers that were lost with the last history.
    pub lost: Option<LostNumbers>,
}

#[derive(sqlx::FromRow)]
struct Row {
    last: i64,
    more: bool,
    is_new_history: bool,
    lost_after: Option<i64>,
    lost_until: Option<i64>,
    #[sqlx(flatten)]
    seen: Seen,
}

impl Store {
    /// Returns how far events are numbered, for workers, and advances `horizon`.
    pub async fn numbered(&self, horizon: &mut Horizon) -> Result<Numbered, Error> {
        let (after, candidate) = horizon.bounds();
        let statement = sqlx::query_as(
            "SELECT last, lost_after, lost_until,
                 history IS DISTINCT FROM coalesce(database_history(), history) AS is_new_history, EXISTS (SELECT FROM submission_events WHERE sequence IS NULL AND id > $1) AS more,
                 EXISTS (SELECT FROM submission_events WHERE sequence IS NULL AND id > $1 AND id <= $2) AS open,
                 pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
                 pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next,
                 (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM submission_events_id_seq) AS drawn
             FROM event_sequence",
        )
        .bind(after)
        .bind(candidate)
        .fetch_one(&self.patient);
        let Row { last, more, is_new_history, lost_after, lost_until, seen } =
            within("looking for new events", statement).await?;
        horizon.take(seen);
        let lost = lost_after.zip(lost_until).map(|(after, until)| LostNumbers { after, until });
        self.histories.see(last, lost);
        Ok(Numbered { last, more, is_new_history, lost })
    }

    /// Returns the highest number that was assigned, for requests.
    pub async fn last_number(&self) -> Result<i64, Error> {
        let action = "reading the number of the newest event";
        let mut connection = self.connection(action).await?;
        within(action, sqlx::query_scalar("SELECT last FROM event_sequence").fetch_one(&mut *connection)).await
    }

    /// Numbers up to [`NUMBERED_AT_ONCE`] committed events, in the order of their ids, and returns how many. Does nothing while
    /// another transaction is numbering. In another history of the database, it first skips the numbers that may be lost.
    pub async fn number_events(&self, horizon: &Horizon) -> Result<u64, Error> {
        self.number(horizon, None).await
    }

    /// Does the same, and adds the attempts to `ended` whose ends it numbered: their submissions and numbers.
    pub async fn number_events_of(&self, horizon: &Horizon, ended: &mut Vec<(String, i32)>) -> Result<u64, Error> {
        self.number(horizon, Some(ended)).await
    }

    async fn number(&self, horizon: &Horizon, mut ended: Option<&mut Vec<(String, i32)>>) -> Result<u64, Error> {
        let mut statements = statements(horizon);
        if ended.is_some() {
            statements.push_str(&returning_ends());
        }
        let statements = sqlx::raw_sql(sqlx::AssertSqlSafe(statements));
        let numbered = async {
            let (mut answers, mut last) = (statements.fetch_many(&self.patient), 0);
            while let Some(answer) = answers.try_next().await? {
                match answer {
                    Either::Left(done) => last = done.rows_affected(),
                    Either::Right(row) => {
                        // The row of another statement has no such column.
                        if let (Some(ended), Ok(Some(id))) = (&mut ended, row.try_get::<Option<String>, _>("ended")) {
                            ended.push((id, row.try_get("attempt")?));
                        }
                    }
                }
            }
            Ok(last)
        };
        within("numbering new events", numbered).await
    }
}

/// Returns the clause that makes the last statement return which events are ends.
fn returning_ends() -> String {
    let ends = ends().join("', '");
    format!(" RETURNING CASE WHEN e.state IN ('{ends}') THEN e.submission_id END AS ended, e.attempt")
}

/// Returns four statements in one message: one round trip, and a transaction that ends by itself even if its caller is
/// dropped.
///
/// Each statement has its own snapshot, whatever the server's default is, so those under the lock see what its previous holder
/// has committed. The last one waits for concurrent deletions, so that no number is assigned to a deleted event.
fn statements(horizon: &Horizon) -> String {
    let (after, _) = horizon.bounds();
    format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
         SELECT set_config('sparkgate.numbers', pg_try_advisory_xact_lock({LOCK})::text, true);
         UPDATE event_sequence SET history = database_history(),
             last = last + CASE WHEN history IS NULL THEN 0 ELSE {SKIPPED} END,
             lost_after = CASE WHEN history IS NOT NULL THEN last END,
             lost_until = CASE WHEN history IS NOT NULL THEN last + {SKIPPED} END
         WHERE current_setting('sparkgate.numbers')::boolean AND history IS DISTINCT FROM coalesce(database_history(), history);
         WITH unnumbered AS MATERIALIZED (
             SELECT ctid AS tuple, id FROM submission_events
             WHERE sequence IS NULL AND id > {after} AND current_setting('sparkgate.numbers')::boolean
             ORDER BY id LIMIT {NUMBERED_AT_ONCE} FOR NO KEY UPDATE
         ), places AS (
             SELECT tuple, row_number() OVER (ORDER BY id) AS place FROM unnumbered
         ), start AS (
             UPDATE event_sequence SET last = last + (SELECT count(*) FROM unnumbered)
             WHERE EXISTS (SELECT FROM unnumbered)
             RETURNING last - (SELECT count(*) FROM unnumbered) AS before
         )
         UPDATE submission_events e SET sequence = before + place FROM places, start WHERE e.ctid = tuple"
    )
}
