//! What a submission has to know of its queue before it is built.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::types::Json;

use super::{QueueState, StoredQueueState, states::BOARD};
use crate::{
    error::{Error, likewise, within},
    group_commit::{BatchWriter, GroupCommit},
    store::Store,
};

/// The most requests that share a statement.
const TOGETHER: usize = 1000;
const READING: &str = "reading the states of queues";

/// What a queue accepts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEntrance {
    pub is_draining: bool,
    /// How many submissions wait in it, also held ones, without its lock.
    pub backlog: u64,
    /// The learned capacity by resource.
    pub capacity: BTreeMap<String, u64>,
}

/// Concurrent submissions share a read.
#[derive(Debug)]
pub(crate) struct Entrances(GroupCommit<String, Result<QueueEntrance, Error>>);

impl Default for Entrances {
    fn default() -> Self {
        Self(GroupCommit::new(1, TOGETHER))
    }
}

impl Store {
    /// Returns what a queue accepts now.
    pub async fn queue_entrance(&self, queue: &str) -> Result<QueueEntrance, Error> {
        let read = self.groups.entrances.0.call(queue.to_owned(), Some(self.patience), || Reader(self.clone())).await;
        read.unwrap_or_else(|why| Err(Error::unread(READING, why)))
    }
}

struct Reader(Store);

impl BatchWriter<String, Result<QueueEntrance, Error>> for Reader {
    async fn write(&self, group: Vec<String>) -> Vec<Result<QueueEntrance, Error>> {
        let queues: BTreeSet<&str> = group.iter().map(String::as_str).collect();
        match self.read(&queues).await {
            Ok((draining, capacity, backlogs)) => {
                let entrance = |queue: &String| QueueEntrance {
                    is_draining: draining.contains(queue),
                    backlog: backlogs.get(queue).copied().unwrap_or_default(),
                    capacity: capacity.clone(),
                };
                group.iter().map(|queue| Ok(entrance(queue))).collect()
            }
            Err(error) => group.iter().map(|_| Err(likewise(&error))).collect(),
        }
    }
}

/// The row: the version of rounds, the learned capacity, the states of queues, and the backlogs.
type Row = (i64, Json<BTreeMap<String, u64>>, Json<Vec<StoredQueueState>>, Json<HashMap<String, u64>>);

/// The queues that drain, the learned capacity, and the backlogs that aren't empty.
type Read = (BTreeSet<String>, BTreeMap<String, u64>, HashMap<String, u64>);

impl Reader {
    async fn read(&self, queues: &BTreeSet<&str>) -> Result<Read, Error> {
        let mut connection = self.0.connection(READING).await?;
        let statement = format!(
            "SELECT board.*, (SELECT coalesce(jsonb_object_agg(queue, greatest(backlog, 0)), '{{}}') FROM (
                 SELECT queue, sum(waiting + held)::bigint AS backlog FROM queue_backlogs WHERE queue = ANY($1) GROUP BY queue
             ) AS backlogs) FROM ({BOARD}) AS board (version, capacity, states)"
        );
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(queues.iter().copied().collect::<Vec<_>>())
            .fetch_one(&mut *connection);
        let (_, Json(capacity), Json(states), Json(backlogs)): Row = within(READING, statement).await?;
        let draining = states.into_iter().filter(|state| state.state == QueueState::Draining);
        Ok((draining.map(|state| state.queue).collect(), capacity, backlogs))
    }
}
