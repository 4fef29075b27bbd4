//! Queues that are paused or draining.

use std::{collections::BTreeMap, fmt};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::{Postgres, QueryBuilder, types::Json};

use crate::{
    actor::Actor,
    audit::{Written, push_entries},
    error::{Error, within},
    store::Store,
};

/// The version of rounds, the learned capacity, and all states.
pub(super) const BOARD: &str = "SELECT version, coalesce(capacity, '{}'), (SELECT coalesce(jsonb_agg(queue_states ORDER BY queue), '[]') FROM queue_states)
     FROM queue_rounds";
/// A row of [`BOARD`].
pub(super) type Board = (i64, Json<BTreeMap<String, u64>>, Json<Vec<StoredQueueState>>);

/// The state of a queue that isn't its normal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueState {
    /// It admits nothing. What runs goes on, and it accepts submissions.
    Paused,
    /// It accepts nothing. What waits is admitted.
    Draining,
}

impl QueueState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Draining => "draining",
        }
    }
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Since when a queue is in a state, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StoredQueueState {
    pub queue: String,
    pub state: QueueState,
    pub changed_at: DateTime<Utc>,
    /// The subject of the principal.
    pub changed_by: String,
    pub reason: Option<String>,
}

impl Store {
    /// Returns the queues that aren't in their normal state.
    pub async fn queue_states(&self) -> Result<Vec<StoredQueueState>, Error> {
        let action = "reading the states of queues";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(BOARD)).fetch_one(&mut *connection);
        let (_, _, Json(states)): Board = within(action, statement).await?;
        Ok(states)
    }

    /// Stores the learned capacity by resource. Returns whether it is another one.
    pub async fn set_queue_capacity(&self, capacity: &BTreeMap<String, u64>) -> Result<bool, Error> {
        let statement = "UPDATE queue_rounds SET capacity = $1 WHERE capacity IS DISTINCT FROM $1";
        let statement = sqlx::query(statement).bind(Json(capacity)).execute(&self.patient);
        Ok(within("storing the capacity of queues", statement).await?.rows_affected() > 0)
    }

    /// Changes the state of a queue, and writes the entry of the audit; `None` is the normal state.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if the connection broke after the statement was sent.
    pub async fn set_queue_state(
        &self,
        queue: &str,
        state: Option<QueueState>,
        (principal, actor): (&str, Option<&Actor>),
        reason: Option<&str>,
    ) -> Result<(), Error> {
        let action = "changing the state of a queue";
        let mut query = QueryBuilder::<Postgres>::new("WITH changed AS (");
        match state {
            Some(state) => {
                query.push("INSERT INTO queue_states (queue, state, changed_by, reason) VALUES (").push_bind(queue);
                query.push(", ").push_bind(state.as_str()).push(", ").push_bind(principal).push(", ").push_bind(reason);
                query.push(
                    ") ON CONFLICT (queue) DO UPDATE SET state = excluded.state, changed_at = clock_timestamp(),
                         changed_by = excluded.changed_by, reason = excluded.reason RETURNING queue)",
                );
            }
            None => {
                query.push("DELETE FROM queue_states WHERE queue = ").push_bind(queue).push(" RETURNING queue)");
            }
        }
        let word = match state {
            Some(QueueState::Paused) => "pause-queue",
            Some(QueueState::Draining) => "drain-queue",
            None => "resume-queue",
        };
        let entry = "SELECT NULL::text AS tenant, NULL::text AS id, 'allowed' AS verdict, queue AS detail FROM changed";
        push_entries(&mut query, actor, word, entry);
        query.push(" SELECT (SELECT count(*) FROM changed)").push(self.written(actor));
        let mut connection = self.connection(action).await?;
        let statement = query.build_query_as().fetch_one(&mut *connection);
        let (_, written): (i64, Written) = within(action, statement).await.map_err(Error::after_sending)?;
        self.pass_on_entries(actor, written);
        Ok(())
    }
}
