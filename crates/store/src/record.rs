//! Reads what a status reply shows of a submission. Clients poll it, so reads that come while others are under way share a statement.

use std::{collections::HashMap, slice};

use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;

use super::{
    error::{Error, likewise, mark, statement_span, within},
    group_commit::{BatchWriter, GroupCommit},
    row::parse,
    scope::Scope,
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::{State, SubmissionId};

/// The properties of a submission in a status reply.
#[derive(Debug, Clone)]
pub struct Record {
    pub id: SubmissionId,
    pub state: State,
    pub attempt: i32,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub pod_uid: Option<String>,
    pub node: Option<String>,
    pub pod_ip: Option<String>,
    pub started_at: Option<DateTime<Utc>>,
    pub cleared: bool,
}

#[derive(Clone, sqlx::FromRow)]
struct RecordRow {
    id: String,
    tenant: String,
    principal: String,
    state: String,
    attempt: i32,
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
    pod_uid: Option<String>,
    node: Option<String>,
    pod_ip: Option<String>,
    started_at: Option<DateTime<Utc>>,
    cleared: bool,
}

impl TryFrom<RecordRow> for Record {
    type Error = Error;

    fn try_from(row: RecordRow) -> Result<Self, Error> {
        Ok(Self {
            id: parse(&row.id, &row.id)?,
            state: parse(&row.id, &row.state)?,
            attempt: row.attempt,
            exit_code: row.exit_code,
            reason: row.reason,
            message: row.message,
            pod_uid: row.pod_uid,
            node: row.node,
            pod_ip: row.pod_ip,
            started_at: row.started_at,
            cleared: row.cleared,
        })
    }
}

/// Maximum number of concurrent reads that have a statement of their own, of concurrent statements that are shared, and of reads that share
/// one. A read of its own needs no other task to be woken up, which is most of the time of a small statement.
const ALONE: usize = 2;
const AT_ONCE: usize = 2;
const TOGETHER: usize = 64;
const READING: &str = "reading a submission";

/// One read: of which submission, and for whom.
struct Wanted {
    id: SubmissionId,
    scope: Scope,
}

type Found = Result<Option<Record>, Error>;

/// Reads that are under way.
#[derive(Debug)]
pub(crate) struct Records {
    alone: Semaphore,
    together: GroupCommit<Wanted, Found>,
}

impl Default for Records {
    fn default() -> Self {
        Self { alone: Semaphore::new(ALONE), together: GroupCommit::new(AT_ONCE, TOGETHER) }
    }
}

impl Scoped {
    /// Returns a submission, or `None` if none has this id.
    pub async fn find(&self, id: &SubmissionId) -> Result<Option<Record>, Error> {
        let Self { store, scope } = self;
        let wanted = Wanted { id: id.clone(), scope: scope.clone() };
        let Records { alone, together } = &store.groups.records;
        if let Ok(_turn) = alone.try_acquire() {
            return wanted.of(&read(store, slice::from_ref(&wanted)).await?);
        }
        // From the call to its answer: the statement is run by a task of its own.
        let span = statement_span(READING);
        let found = together.call(wanted, Some(store.patience), || Reader(store.clone())).await;
        let found = found.unwrap_or_else(|why| Err(Error::unread(READING, why)));
        mark(&span, &found);
        found
    }
}

struct Reader(Store);

impl BatchWriter<Wanted, Found> for Reader {
    async fn write(&self, group: Vec<Wanted>) -> Vec<Found> {
        match read(&self.0, &group).await {
            Ok(rows) => group.iter().map(|wanted| wanted.of(&rows)).collect(),
            Err(error) => group.iter().map(|_| Err(likewise(&error))).collect(),
        }
    }
}

async fn read(store: &Store, group: &[Wanted]) -> Result<HashMap<String, RecordRow>, Error> {
    let mut connection = store.connection(READING).await?;
    let ids: Vec<&str> = group.iter().map(|wanted| wanted.id.as_str()).collect();
    let statement = sqlx::query_as(
        "SELECT id, tenant, principal, state, attempt, exit_code, reason, message, pod_uid, node, pod_ip, started_at,
                cleared_at IS NOT NULL AS cleared
         FROM submissions WHERE id = ANY($1)",
    );
    let rows: Vec<RecordRow> = within(READING, statement.bind(ids).fetch_all(&mut *connection)).await?;
    Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
}

impl Wanted {
    /// Returns the record, if there is one in the scope of this read.
    fn of(&self, rows: &HashMap<String, RecordRow>) -> Found {
        let row = rows.get(self.id.as_str()).filter(|row| self.scope.covers(&row.tenant, &row.principal));
        row.cloned().map(Record::try_from).transpose()
    }
}
