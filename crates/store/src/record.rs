//! Reads what a status reply shows of a submission. Clients poll it, so concurrent reads share a statement.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

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

/// Maximum number of concurrent statements, and of reads that share one.
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
pub(crate) struct Records(GroupCommit<Wanted, Found>);

impl Default for Records {
    fn default() -> Self {
        Self(GroupCommit::new(AT_ONCE, TOGETHER))
    }
}

impl Scoped {
    /// Returns a submission, or `None` if none has this id.
    pub async fn find(&self, id: &SubmissionId) -> Result<Option<Record>, Error> {
        let Self { store, scope } = self;
        let span = statement_span(READING);
        let wanted = Wanted { id: id.clone(), scope: scope.clone() };
        let found = store.groups.records.0.call(wanted, Some(store.patience), || Reader(store.clone())).await;
        let found = found.unwrap_or_else(|why| Err(Error::unread(READING, why)));
        mark(&span, &found);
        found
    }
}

struct Reader(Store);

impl BatchWriter<Wanted, Found> for Reader {
    async fn write(&self, group: Vec<Wanted>) -> Vec<Found> {
        match self.read(&group).await {
            Ok(rows) => group.iter().map(|wanted| wanted.of(&rows)).collect(),
            Err(error) => group.iter().map(|_| Err(likewise(&error))).collect(),
        }
    }
}

impl Reader {
    async fn read(&self, group: &[Wanted]) -> Result<HashMap<String, RecordRow>, Error> {
        let mut connection = self.0.connection(READING).await?;
        let ids: Vec<&str> = group.iter().map(|wanted| wanted.id.as_str()).collect();
        let statement = sqlx::query_as(
            "SELECT id, tenant, principal, state, attempt, exit_code, reason, message, pod_uid, node, pod_ip, started_at,
                    cleared_at IS NOT NULL AS cleared
             FROM submissions WHERE id = ANY($1)",
        );
        let rows: Vec<RecordRow> = within(READING, statement.bind(ids).fetch_all(&mut *connection)).await?;
        Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
    }
}

impl Wanted {
    /// Returns the record, if there is one in the scope of this read.
    fn of(&self, rows: &HashMap<String, RecordRow>) -> Found {
        let row = rows.get(self.id.as_str()).filter(|row| self.scope.covers(&row.tenant, &row.principal));
        row.cloned().map(Record::try_from).transpose()
    }
}
