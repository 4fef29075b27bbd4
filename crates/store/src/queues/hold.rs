//! Submissions that are held and released.

use sqlx::{Postgres, QueryBuilder, Row, types::Json};

use crate::{
    actor::Actor,
    audit::{Written, push_entries},
    claim::UNCLAIMED,
    error::{Error, within},
    scope::Scope,
    scoped::Scoped,
    state_log::{CHANGED, ChangedRow},
    submissions::{COLUMNS, Filter, Found},
    unadmitted::{HELD_RANK, UNADMITTED, queue_rank},
};
use sparkgate_submission::{SubmissionId, queues::QueueEvent};

/// What became of a request to hold or release a submission.
#[derive(Debug)]
pub struct HoldAnswer {
    /// It was held or released by this statement. Otherwise it was already, or it isn't queued any more.
    pub changed: bool,
    /// The caller may change it.
    pub allowed: bool,
    /// `None` if the caller may see no submission with this id.
    pub submission: Option<Found>,
}

/// Submissions that a statement changed.
#[derive(Debug, Default)]
pub struct Changed {
    pub ids: Vec<SubmissionId>,
    /// The largest of their numbers.
    pub last: Option<i64>,
}

/// The next submissions that match a filter, in the order of their numbers.
#[derive(Debug, Clone, Copy)]
pub struct Matching<'a> {
    pub filter: &'a Filter,
    /// Only larger numbers. The first submission has the number 0, so nothing stands for the begin.
    pub after: Option<i64>,
    pub limit: u32,
}

impl Matching<'_> {
    /// Appends the criteria to a `WHERE` clause, with the order.
    pub(super) fn push_to(self, query: &mut QueryBuilder<Postgres>) {
        self.filter.push_to(query, None);
        if let Some(after) = self.after {
            query.push(" AND number > ").push_bind(after);
        }
        query.push(" ORDER BY number LIMIT ").push_bind(i64::from(self.limit));
    }
}

/// A change of queued submissions.
#[derive(Clone, Copy)]
enum Change<'a> {
    Hold { by: &'a str, reason: Option<&'a str> },
    Release,
}

impl Change<'_> {
    fn action(self) -> &'static str {
        match self {
            Self::Hold { .. } => "holding submissions",
            Self::Release => "releasing submissions",
        }
    }

    /// The name in the audit.
    fn word(self) -> &'static str {
        match self {
            Self::Hold { .. } => "hold",
            Self::Release => "release",
        }
    }

    /// The reason of the event.
    fn event(self) -> &'static str {
        match self {
            Self::Hold { .. } => QueueEvent::Held.as_str(),
            Self::Release => QueueEvent::Released.as_str(),
        }
    }

    /// Returns the condition for rows that it concerns. A queued row is claimed by no session.
    fn concerns(self) -> &'static str {
        match self {
            Self::Hold { .. } => "state = 'QUEUED' AND held_at IS NULL",
            Self::Release => "state = 'QUEUED' AND held_at IS NOT NULL",
        }
    }

    /// Appends the assignments to the row `s`. The timeouts stop while it is held, and begin anew.
    fn push_assignments(self, query: &mut QueryBuilder<Postgres>) {
        let rank = queue_rank("s");
        match self {
            Self::Hold { by, reason } => {
                query.push(format_args!(
                    "claimed_by = {UNADMITTED}, queue_rank = CASE WHEN queue IS NOT NULL THEN {HELD_RANK} END,
                     queue_deadline = NULL, deadline = NULL, admitted_at = NULL, held_at = clock_timestamp(), held_by = "
                ));
                query.push_bind(by).push(", held_reason = ").push_bind(reason);
                let words = reason.map_or_else(|| format!("held by {by}"), |reason| format!("held by {by}: {reason}"));
                query.push(format_args!(", reason = '{}', message = ", self.event())).push_bind(words);
            }
            Self::Release => {
                query.push(format_args!(
                    "claimed_by = CASE WHEN queue IS NULL THEN {UNCLAIMED} ELSE {UNADMITTED} END,
                     queue_rank = CASE WHEN queue IS NOT NULL THEN {rank} END,
                     queue_deadline = clock_timestamp() + make_interval(secs => queue_timeout),
                     deadline = CASE WHEN queue IS NULL THEN clock_timestamp() + make_interval(secs => start_timeout) END,
                     held_at = NULL, held_by = NULL, held_reason = NULL, reason = NULL, message = NULL"
                ));
            }
        }
    }
}

impl Scoped {
    /// Holds a queued submission, if it is also in the scope `changeable`: it isn't launched before it is released, and its timeouts stop.
    /// Writes its event, and the entry of the audit.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if the connection broke after the statement was sent.
    pub async fn hold(
        &self,
        id: &SubmissionId,
        changeable: &Scope,
        (by, actor): (&str, Option<&Actor>),
        reason: Option<&str>,
    ) -> Result<HoldAnswer, Error> {
        self.change_one(id, changeable, actor, Change::Hold { by, reason }).await
    }

    /// Releases a held submission, in the same way. In a queue it has its old place again.
    ///
    /// # Errors
    /// The same.
    pub async fn release_held(
        &self,
        id: &SubmissionId,
        changeable: &Scope,
        actor: Option<&Actor>,
    ) -> Result<HoldAnswer, Error> {
        self.change_one(id, changeable, actor, Change::Release).await
    }

    /// Holds up to `limit` queued submissions of the scope that match a filter, in the order of their numbers, after this number.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if some may have been held.
    pub async fn hold_next(
        &self,
        matching: Matching<'_>,
        (by, actor): (&str, Option<&Actor>),
        reason: Option<&str>,
    ) -> Result<Changed, Error> {
        self.change_next(matching, actor, Change::Hold { by, reason }).await
    }

    /// Releases held submissions in the same way.
    ///
    /// # Errors
    /// The same.
    pub async fn release_next(&self, matching: Matching<'_>, actor: Option<&Actor>) -> Result<Changed, Error> {
        self.change_next(matching, actor, Change::Release).await
    }

    async fn change_one(
        &self,
        id: &SubmissionId,
        changeable: &Scope,
        actor: Option<&Actor>,
        change: Change<'_>,
    ) -> Result<HoldAnswer, Error> {
        let mut query = QueryBuilder::<Postgres>::new("WITH found AS (SELECT ");
        query.push(COLUMNS).push(", ");
        changeable.push_condition(&mut query, "s");
        query.push(" AS allowed FROM submissions s WHERE id = ").push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(" FOR UPDATE), moved AS (UPDATE submissions s SET ");
        change.push_assignments(&mut query);
        query.push(format_args!(
            " WHERE s.id = (SELECT id FROM found WHERE allowed AND {}) RETURNING s.*, 'QUEUED' AS was), ",
            change.concerns()
        ));
        push_events(&mut query, change);
        let entry = "SELECT tenant, id, 'allowed' AS verdict, NULL::text AS detail FROM moved";
        push_entries(&mut query, actor, change.word(), entry);
        let written = self.store.written(actor);
        query.push(format_args!(
            " SELECT {COLUMNS}, true AS changed, true AS allowed, {CHANGED} AS changes {written} FROM moved
             UNION ALL
             SELECT {COLUMNS}, false, allowed, '[]'::jsonb {written} FROM found WHERE NOT EXISTS (SELECT FROM moved)"
        ));
        let action = change.action();
        let mut connection = self.store.connection(action).await?;
        let row = within(action, query.build().fetch_optional(&mut *connection)).await.map_err(Error::after_sending)?;
        let Some(row) = row else { return Ok(HoldAnswer { changed: false, allowed: false, submission: None }) };
        let flag = |name| row.try_get(name).unwrap_or(false);
        if let Ok(Json(changes)) = row.try_get::<Json<Vec<ChangedRow>>, _>("changes") {
            record(&changes, change);
        }
        self.store.pass_on_entries(actor, row.try_get::<Written, _>("written").ok().flatten());
        let submission = Some(Found::read(id.clone(), &row));
        Ok(HoldAnswer { changed: flag("changed"), allowed: flag("allowed"), submission })
    }

    async fn change_next(
        &self,
        matching: Matching<'_>,
        actor: Option<&Actor>,
        change: Change<'_>,
    ) -> Result<Changed, Error> {
        let action = change.action();
        let mut query = QueryBuilder::<Postgres>::new("WITH these AS (SELECT id FROM submissions s WHERE ");
        query.push(change.concerns()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        matching.push_to(&mut query);
        query.push(" FOR UPDATE), moved AS (UPDATE submissions s SET ");
        change.push_assignments(&mut query);
        query.push(" FROM these WHERE s.id = these.id RETURNING s.*, 'QUEUED' AS was), ");
        push_events(&mut query, change);
        let entries = "SELECT tenant, id, 'allowed' AS verdict, NULL::text AS detail FROM moved";
        push_entries(&mut query, actor, change.word(), entries);
        query.push(format_args!(" SELECT {CHANGED}, (SELECT max(number) FROM moved)")).push(self.store.written(actor));
        let mut connection = self.store.connection(action).await?;
        let statement = query.build_query_as().fetch_one(&mut *connection);
        let (Json(changes), last, written): (Json<Vec<ChangedRow>>, Option<i64>, Written) =
            within(action, statement).await.map_err(Error::after_sending)?;
        record(&changes, change);
        self.store.pass_on_entries(actor, written);
        Ok(Changed { ids: ChangedRow::ids(&changes)?, last })
    }
}

/// Appends the part of a `WITH` list that writes the events of `moved`.
fn push_events(query: &mut QueryBuilder<Postgres>, change: Change<'_>) {
    query.push(format_args!(
        "logged AS (
             INSERT INTO submission_events (submission_id, attempt, state, reason, message)
             SELECT id, attempt, state, '{}', message FROM moved
         )",
        change.event()
    ));
}

fn record(changes: &[ChangedRow], change: Change<'_>) {
    changes.iter().for_each(|row| ChangedRow::record_as(row, Some(change.event())));
}
