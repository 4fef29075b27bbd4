//! Submissions that wait in a queue, and move to another one or change their priority.

use std::collections::BTreeMap;

use sqlx::{Postgres, QueryBuilder, Row, types::Json};

use super::hold::HoldAnswer;
use crate::{
    accept::{Cost, InQueue},
    actor::Actor,
    audit::{Written, push_entries},
    error::{Error, within},
    scope::Scope,
    scoped::Scoped,
    state_log::{CHANGED, ChangedRow},
    submissions::{COLUMNS, Found},
    unadmitted::{WAITS, rank_with},
};
use sparkgate_submission::SubmissionId;

const ACTION: &str = "moving a submission to a queue";
/// The reason of the event.
const EVENT: &str = "Requeued";

/// A submission that waits in a queue, or is held there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InBacklog {
    pub tenant: String,
    pub queue: String,
    pub priority: i32,
    /// As its first queue computed it.
    pub cost: Cost,
}

/// A submission that is to be moved.
#[derive(Debug)]
pub struct ToRequeue {
    /// The caller may change it.
    pub allowed: bool,
    /// `None` if it doesn't wait in a queue.
    pub in_backlog: Option<InBacklog>,
}

#[derive(sqlx::FromRow)]
struct Stored {
    allowed: bool,
    waits: bool,
    tenant: String,
    queue: Option<String>,
    priority: Option<i32>,
    cost_pods: Option<i32>,
    cost_millicores: Option<i64>,
    cost_memory_bytes: Option<i64>,
    cost_driver_millicores: Option<i64>,
    cost_driver_memory_bytes: Option<i64>,
    cost_grows: Option<bool>,
    cost_extended: Option<Json<BTreeMap<String, i64>>>,
}

impl From<Stored> for ToRequeue {
    fn from(row: Stored) -> Self {
        let cost = Cost {
            pods: row.cost_pods.unwrap_or_default(),
            millicores: row.cost_millicores.unwrap_or_default(),
            memory_bytes: row.cost_memory_bytes.unwrap_or_default(),
            driver_millicores: row.cost_driver_millicores.unwrap_or_default(),
            driver_memory_bytes: row.cost_driver_memory_bytes.unwrap_or_default(),
            grows: row.cost_grows.unwrap_or_default(),
            extended: row.cost_extended.map(|Json(amounts)| amounts).unwrap_or_default(),
        };
        let (tenant, priority) = (row.tenant, row.priority.unwrap_or_default());
        let queue = row.queue.filter(|_| row.waits);
        Self { allowed: row.allowed, in_backlog: queue.map(|queue| InBacklog { tenant, queue, priority, cost }) }
    }
}

impl Scoped {
    /// Returns a submission that is to be moved, or `None` if none in the scope has this id.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn to_requeue(&self, id: &SubmissionId, changeable: &Scope) -> Result<Option<ToRequeue>, Error> {
        let mut query = QueryBuilder::<Postgres>::new("SELECT ");
        changeable.push_condition(&mut query, "s");
        query
            .push(format_args!(
                " AS allowed, ({WAITS}) IS TRUE AS waits, tenant, queue, priority, cost_pods, cost_millicores, cost_memory_bytes,
                 cost_driver_millicores, cost_driver_memory_bytes, cost_grows, cost_extended FROM submissions s WHERE id = "
            ))
            .push_bind(id.as_str())
            .push(" AND ");
        self.scope.push_condition(&mut query, "s");
        let mut connection = self.store.connection(ACTION).await?;
        let row: Option<Stored> = within(ACTION, query.build_query_as().fetch_optional(&mut *connection)).await?;
        Ok(row.map(Into::into))
    }

    /// Moves a submission that waits in the queue `from`, or is held there, if it is also in the scope `changeable`. Its timeout in the
    /// queue begins anew, and its cost stays. Writes its event, and the entry of the audit. Answers as [`Scoped::hold`] does; `None`: the
    /// backlog of the other queue is full, and nothing was changed.
    ///
    /// The lock of the queue comes before that of the row, as in the statement that accepts submissions.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if the connection broke after the statement was sent.
    pub async fn requeue(
        &self,
        id: &SubmissionId,
        changeable: &Scope,
        (by, actor): (&str, Option<&Actor>),
        from: &InBacklog,
        to: &InQueue,
    ) -> Result<Option<HoldAnswer>, Error> {
        let limit =
            to.max_queued.filter(|_| to.queue != from.queue).map(|most| i64::try_from(most).unwrap_or(i64::MAX));
        let (rank, message) = (rank_with("s", to.priority), words(by, from, to));
        let mut query = QueryBuilder::<Postgres>::new("WITH room AS MATERIALIZED (SELECT ");
        match limit {
            Some(most) => {
                query.push("locked_backlog(").push_bind(&to.queue).push(", ").push_bind(most);
                query.push(") < ").push_bind(most);
            }
            None => {
                query.push("true");
            }
        }
        // A decision that has been made already is about the other queue: it becomes void.
        query.push(
            " AS has_room), begun AS (
                 UPDATE queue_rounds SET version = version + 1 WHERE (SELECT has_room FROM room) RETURNING version
             ), found AS (SELECT ",
        );
        query.push(COLUMNS).push(", ");
        changeable.push_condition(&mut query, "s");
        query.push(format_args!(" AS allowed, ({WAITS}) IS TRUE AS waits FROM submissions s WHERE id = "));
        query.push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(
            " AND (SELECT count(*) FROM begun) >= 0 FOR UPDATE), moved AS (
                 UPDATE submissions s SET queue = ",
        );
        query.push_bind(&to.queue).push(", priority = ").push_bind(to.priority);
        query.push(", queue_timeout = ").push_bind(to.timeout);
        query.push(format_args!(
            ", queue_rank = CASE WHEN held_at IS NULL THEN {rank} ELSE queue_rank END,
             reason = CASE WHEN held_at IS NOT NULL THEN reason END, message = CASE WHEN held_at IS NOT NULL THEN message END,
             queue_deadline = CASE WHEN held_at IS NULL THEN clock_timestamp() + make_interval(secs => "
        ));
        query
            .push_bind(to.timeout)
            .push(") END WHERE s.id = (SELECT id FROM found WHERE allowed AND waits AND queue = ");
        query.push_bind(&from.queue).push(format_args!(
            ") AND (SELECT has_room FROM room) RETURNING s.*, s.state AS was
             ), logged AS (
                 INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                 SELECT id, attempt, state, '{EVENT}', "
        ));
        query.push_bind(&message).push(" FROM moved)");
        let entry = "SELECT tenant, id, 'allowed' AS verdict, 'queue ' || queue || ', priority ' || priority AS detail FROM moved";
        push_entries(&mut query, actor, "requeue", entry);
        let written = self.store.written(actor);
        query.push(format_args!(
            " SELECT {COLUMNS}, true AS changed, true AS allowed, true AS has_room, {CHANGED} AS changes {written} FROM moved
             UNION ALL
             SELECT {COLUMNS}, false, allowed, (SELECT has_room FROM room), '[]'::jsonb {written} FROM found
             WHERE NOT EXISTS (SELECT FROM moved)"
        ));
        let mut connection = self.store.connection(ACTION).await?;
        let row = within(ACTION, query.build().fetch_optional(&mut *connection)).await.map_err(Error::after_sending)?;
        let Some(row) = row else {
            return Ok(Some(HoldAnswer { changed: false, allowed: false, submission: None }));
        };
        let flag = |name| row.try_get(name).unwrap_or(false);
        if !flag("has_room") {
            return Ok(None);
        }
        if let Ok(Json(changes)) = row.try_get::<Json<Vec<ChangedRow>>, _>("changes") {
            changes.iter().for_each(|row| ChangedRow::record_as(row, Some(EVENT)));
        }
        self.store.pass_on_entries(actor, row.try_get::<Written, _>("written").ok().flatten());
        let submission = Some(Found::read(id.clone(), &row));
        Ok(Some(HoldAnswer { changed: flag("changed"), allowed: flag("allowed"), submission }))
    }
}

/// Returns the message of the event.
fn words(by: &str, from: &InBacklog, to: &InQueue) -> String {
    let InQueue { queue, priority, .. } = to;
    match *queue == from.queue {
        true => format!("{by} changed the priority in queue {queue} from {} to {priority}", from.priority),
        false => format!("{by} moved it from queue {} to queue {queue}, with priority {priority}", from.queue),
    }
}
