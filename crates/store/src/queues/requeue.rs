//! Submissions that wait in a queue, and move to another one or change their priority.

use std::collections::BTreeMap;

use sqlx::{Postgres, QueryBuilder, types::Json};

use super::hold::Matching;
use crate::{
    accept::Cost,
    actor::Actor,
    audit::{Written, push_entries},
    error::{Error, within},
    row::{parse, readable},
    scope::Scope,
    scoped::Scoped,
    state_log::{CHANGED, ChangedRow},
    unadmitted::{WAITS, rank_with},
};
use sparkgate_submission::{SubmissionId, queues::QueueEvent};

const ACTION: &str = "moving a submission to a queue";
/// The reason of the event.
const EVENT: &str = QueueEvent::Requeued.as_str();

/// The columns of [`InBacklog`].
const IN_BACKLOG: &str =
    "tenant, queue, priority, cost_pods, cost_millicores, cost_memory_bytes, cost_driver_millicores,
    cost_driver_memory_bytes, cost_grows, cost_extended";

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

/// A submission that waits in a queue, of those that match a filter.
#[derive(Debug)]
pub struct Waits {
    pub id: SubmissionId,
    pub number: i64,
    pub place: InBacklog,
}

/// A submission that moves.
#[derive(Debug)]
pub struct Move<'a> {
    pub id: &'a SubmissionId,
    pub from: &'a InBacklog,
    pub priority: i32,
}

/// Where submissions move to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub queue: String,
    /// How many submissions may wait there. Those that wait there already don't count as new ones.
    pub max_queued: Option<u64>,
    /// How many seconds they may wait for their admission.
    pub timeout: Option<i32>,
}

/// Which submissions have moved.
#[derive(Debug, Default)]
pub struct Moved {
    pub ids: Vec<SubmissionId>,
    /// There was no room for all.
    pub is_full: bool,
}

#[derive(sqlx::FromRow)]
struct OneStored {
    allowed: bool,
    waits: bool,
    #[sqlx(flatten)]
    place: Stored,
}

#[derive(sqlx::FromRow)]
struct NextStored {
    id: String,
    number: i64,
    #[sqlx(flatten)]
    place: Stored,
}

#[derive(sqlx::FromRow)]
struct Stored {
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

impl Stored {
    /// Returns the place, if it is in a queue.
    fn place(self) -> Option<InBacklog> {
        let cost = Cost {
            pods: self.cost_pods.unwrap_or_default(),
            millicores: self.cost_millicores.unwrap_or_default(),
            memory_bytes: self.cost_memory_bytes.unwrap_or_default(),
            driver_millicores: self.cost_driver_millicores.unwrap_or_default(),
            driver_memory_bytes: self.cost_driver_memory_bytes.unwrap_or_default(),
            grows: self.cost_grows.unwrap_or_default(),
            extended: self.cost_extended.map(|Json(amounts)| amounts).unwrap_or_default(),
        };
        Some(InBacklog { tenant: self.tenant, queue: self.queue?, priority: self.priority.unwrap_or_default(), cost })
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
            .push(format_args!(" AS allowed, ({WAITS}) IS TRUE AS waits, {IN_BACKLOG} FROM submissions s WHERE id = "))
            .push_bind(id.as_str())
            .push(" AND ");
        self.scope.push_condition(&mut query, "s");
        let mut connection = self.store.connection(ACTION).await?;
        let row: Option<OneStored> = within(ACTION, query.build_query_as().fetch_optional(&mut *connection)).await?;
        Ok(row.map(|OneStored { allowed, waits, place }| ToRequeue {
            allowed,
            in_backlog: if waits { place.place() } else { None },
        }))
    }

    /// Returns the next submissions of the scope that wait in a queue, or are held there, and match a filter, in the order of their
    /// numbers.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn next_to_requeue(&self, matching: Matching<'_>) -> Result<Vec<Waits>, Error> {
        let mut query = QueryBuilder::<Postgres>::new(format!(
            "SELECT id, number, {IN_BACKLOG} FROM submissions s WHERE queue IS NOT NULL AND {WAITS} AND "
        ));
        self.scope.push_condition(&mut query, "s");
        matching.push_to(&mut query);
        let mut connection = self.store.connection(ACTION).await?;
        let rows: Vec<NextStored> = within(ACTION, query.build_query_as().fetch_all(&mut *connection)).await?;
        let found = rows.into_iter().filter_map(|NextStored { id, number, place }| {
            let place = place.place()?;
            Some(parse(&id, &id).map(|id| Waits { id, number, place }))
        });
        Ok(readable(found))
    }

    /// Moves submissions of the scope that wait in the queues that are named, or are held there, to another queue or priority, as far as
    /// there is room, in the order of their numbers. Their timeout in the queue begins anew, and their costs stay. Writes their events, and
    /// the entries of the audit.
    ///
    /// The lock of the queue comes before those of the rows, as in the statement that accepts submissions.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if the connection broke after the statement was sent.
    pub async fn requeue(
        &self,
        (by, actor): (&str, Option<&Actor>),
        moves: &[Move<'_>],
        to: &Destination,
    ) -> Result<Moved, Error> {
        let mut query = QueryBuilder::<Postgres>::new("WITH room AS MATERIALIZED (SELECT ");
        match to.max_queued {
            Some(most) => {
                let most = i64::try_from(most).unwrap_or(i64::MAX);
                query
                    .push_bind(most)
                    .push(" - locked_backlog(")
                    .push_bind(&to.queue)
                    .push(", ")
                    .push_bind(most)
                    .push(")");
            }
            None => {
                query.push("NULL::bigint");
            }
        }
        // A decision that has been made already is about the other queue: it becomes void.
        query.push(
            " AS places), begun AS (
                 UPDATE queue_rounds SET version = version + 1 WHERE (SELECT places FROM room) IS DISTINCT FROM 0 RETURNING version
             ), found AS MATERIALIZED (
                 SELECT s.id AS of_id, new_priority, words FROM unnest(",
        );
        query.push_bind(moves.iter().map(|one| one.id.as_str()).collect::<Vec<_>>()).push("::text[], ");
        query.push_bind(moves.iter().map(|one| one.from.queue.as_str()).collect::<Vec<_>>()).push("::text[], ");
        query.push_bind(moves.iter().map(|one| one.priority).collect::<Vec<_>>()).push("::integer[], ");
        query.push_bind(moves.iter().map(|one| words(by, one, &to.queue)).collect::<Vec<_>>()).push(format_args!(
            "::text[]) AS pick (pick_id, from_queue, new_priority, words) JOIN submissions s ON s.id = pick_id AND s.queue = from_queue
             WHERE {WAITS} AND (SELECT count(*) FROM begun) >= 0 AND "
        ));
        self.scope.push_condition(&mut query, "s");
        query.push(
            " ORDER BY s.number + 0 LIMIT (SELECT places FROM room) FOR UPDATE OF s), moved AS (
                 UPDATE submissions s SET queue = ",
        );
        query.push_bind(&to.queue).push(", priority = new_priority, queue_timeout = ").push_bind(to.timeout);
        query.push(format_args!(
            ", queue_rank = CASE WHEN held_at IS NULL THEN {} ELSE queue_rank END,
             reason = CASE WHEN held_at IS NOT NULL THEN reason END, message = CASE WHEN held_at IS NOT NULL THEN message END,
             queue_deadline = CASE WHEN held_at IS NULL THEN clock_timestamp() + make_interval(secs => ",
            rank_with("s", "new_priority::bigint")
        ));
        query.push_bind(to.timeout).push(format_args!(
            ") END FROM found WHERE s.id = of_id RETURNING s.*, s.state AS was, words
             ), logged AS (
                 INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                 SELECT id, attempt, state, '{EVENT}', words FROM moved
             )"
        ));
        let entries = "SELECT tenant, id, 'allowed' AS verdict, 'queue ' || queue || ', priority ' || priority AS detail FROM moved";
        push_entries(&mut query, actor, "requeue", entries);
        query.push(format_args!(" SELECT {CHANGED}, (SELECT places FROM room)")).push(self.store.written(actor));
        let mut connection = self.store.connection(ACTION).await?;
        let statement = query.build_query_as().fetch_one(&mut *connection);
        let (Json(changes), places, written): (Json<Vec<ChangedRow>>, Option<i64>, Written) =
            within(ACTION, statement).await.map_err(Error::after_sending)?;
        changes.iter().for_each(|row| ChangedRow::record_as(row, Some(EVENT)));
        self.store.pass_on_entries(actor, written);
        let is_full = changes.len() < moves.len() && places.is_some_and(|places| places <= changes.len() as i64);
        Ok(Moved { ids: ChangedRow::ids(&changes)?, is_full })
    }
}

/// Returns the message of the event.
fn words(by: &str, one: &Move<'_>, to: &str) -> String {
    let Move { from, priority, .. } = one;
    match to == from.queue {
        true => format!("{by} changed the priority in queue {to} from {} to {priority}", from.priority),
        false => format!("{by} moved it from queue {} to queue {to}, with priority {priority}", from.queue),
    }
}
