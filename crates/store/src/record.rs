//! Reads what a status reply shows of a submission. Clients poll it, so reads that come while others are under way share a statement.

pub(super) mod groups;
mod row;

use std::collections::HashMap;

use self::{
    groups::{Found, Records, Wanted},
    row::RecordRow,
};
use super::{
    error::{Error, likewise, mark, statement_span, within},
    group_commit::BatchWriter,
    scoped::Scoped,
    store::Store,
};
pub use row::Record;
use sparkgate_submission::SubmissionId;

const READING: &str = "reading a submission";

impl Scoped {
    /// Returns a submission, or `None` if none has this id.
    pub async fn find(&self, id: &SubmissionId) -> Result<Option<Record>, Error> {
        let Self { store, scope } = self;
        let wanted = Wanted { id: id.clone(), scope: scope.clone() };
        let Records { alone, together } = &store.groups.records;
        if let Ok(_turn) = alone.try_acquire() {
            return wanted.of(read(store, id).await?);
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
        match read_all(&self.0, &group).await {
            Ok(rows) => group.iter().map(|wanted| wanted.of(rows.get(wanted.id.as_str()).cloned())).collect(),
            Err(error) => group.iter().map(|_| Err(likewise(&error))).collect(),
        }
    }
}

macro_rules! records {
    ($of:literal) => {
        concat!(
            "SELECT id, tenant, principal, state, attempt, exit_code, reason, message, pod_uid, node, pod_ip, started_at,
                    cleared_at IS NOT NULL AS cleared
             FROM submissions WHERE id = ",
            $of
        )
    };
}

/// Reads one row. Postgres plans this statement once for each connection, and that of a group each time.
async fn read(store: &Store, id: &SubmissionId) -> Result<Option<RecordRow>, Error> {
    let mut connection = store.connection(READING).await?;
    let statement = sqlx::query_as(records!("$1")).bind(id.as_str());
    within(READING, statement.fetch_optional(&mut *connection)).await
}

async fn read_all(store: &Store, group: &[Wanted]) -> Result<HashMap<String, RecordRow>, Error> {
    let mut connection = store.connection(READING).await?;
    let ids: Vec<&str> = group.iter().map(|wanted| wanted.id.as_str()).collect();
    let statement = sqlx::query_as(records!("ANY($1)")).bind(ids);
    let rows: Vec<RecordRow> = within(READING, statement.fetch_all(&mut *connection)).await?;
    Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
}

impl Wanted {
    /// Returns the record of the row, if that is in the scope of this read.
    fn of(&self, row: Option<RecordRow>) -> Found {
        let row = row.filter(|row| self.scope.covers(&row.tenant, &row.principal));
        row.map(Record::try_from).transpose()
    }
}
