//! Reads of one submission, which clients poll: those that come while others are under way share a statement.

pub(super) mod groups;

use std::slice;

use sqlx::{FromRow, Postgres, QueryBuilder, Row, postgres::PgRow};

use self::groups::{Found, GroupedReads, TOGETHER, View, Wanted};
use super::{
    error::{Error, likewise, mark, statement_span, within},
    group_commit::BatchWriter,
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::SubmissionId;

const READING: &str = "reading a submission";

impl<V: View> GroupedReads<V> {
    /// Returns the row of a submission, or `None` if none of the scope has this id.
    ///
    /// # Errors
    /// [`Error`]. A row that can't be read fails no read of another one.
    pub(super) async fn read(&self, of: &Scoped, id: &SubmissionId, view: V) -> Found<V> {
        let Scoped { store, scope } = of;
        let wanted = Wanted { id: id.clone(), scope: scope.clone(), view };
        if let Ok(_turn) = self.alone.try_acquire() {
            return wanted.alone(store).await;
        }
        // From the call to its answer: the statement is run by a task of its own.
        let span = statement_span(READING);
        let found = self.together.call(wanted, Some(store.patience), || Reader(store.clone())).await;
        let found = found.unwrap_or_else(|why| Err(Error::unread(READING, why)));
        mark(&span, &found);
        found
    }
}

struct Reader(Store);

impl<V: View> BatchWriter<Wanted<V>, Found<V>> for Reader {
    async fn write(&self, group: Vec<Wanted<V>>) -> Vec<Found<V>> {
        let mut found = Vec::with_capacity(group.len());
        for these in group.chunk_by(|one, next| one.view == next.view) {
            match read_all(&self.0, these).await {
                Ok(rows) => found.extend(rows),
                // It may concern one of the rows.
                Err(Error::Statement { .. }) if these.len() > 1 => {
                    for wanted in these {
                        found.push(wanted.alone(&self.0).await);
                    }
                }
                Err(error) => found.extend(these.iter().map(|_| Err(likewise(&error)))),
            }
        }
        found
    }
}

impl<V: View> Wanted<V> {
    async fn alone(&self, store: &Store) -> Found<V> {
        read_all(store, slice::from_ref(self)).await?.pop().unwrap_or(Ok(None))
    }

    /// Decodes a row, if it is in the scope of this read.
    fn decode(&self, row: &PgRow) -> Found<V> {
        let decode = || {
            let covered = self.scope.covers(row.try_get("tenant")?, row.try_get("principal")?);
            covered.then(|| V::Row::from_row(row)).transpose()
        };
        decode().map_err(|error| Error::row(self.id.as_str(), error))
    }
}

/// Reads the rows of views that are equal.
async fn read_all<V: View>(store: &Store, these: &[Wanted<V>]) -> Result<Vec<Found<V>>, Error> {
    let Some(first) = these.first() else { return Ok(Vec::new()) };
    let mut query = QueryBuilder::new("");
    first.view.push(&mut query, |query| push_rows(query, these));
    let mut connection = store.connection(READING).await?;
    let rows = within(READING, query.build().fetch_all(&mut *connection)).await?;
    drop(connection);
    let mut found: Vec<_> = these.iter().map(|_| Ok(None)).collect();
    for row in rows {
        let place: i32 = within(READING, async { row.try_get("place") }).await?;
        let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
        if let (Some(wanted), Some(found)) = (these.get(place), found.get_mut(place)) {
            *found = wanted.decode(&row);
        }
    }
    Ok(found)
}

/// Appends the rows with these ids, and the place of each among them. The number of places is constant, and each row is looked up by itself:
/// the estimates and so the plan are the same for all ids, and Postgres plans the statement once for each connection.
fn push_rows<V>(query: &mut QueryBuilder<Postgres>, these: &[Wanted<V>]) {
    if let [wanted] = these {
        query
            .push("(SELECT 1 AS place, * FROM submissions WHERE id = ")
            .push_bind(wanted.id.to_string())
            .push(") AS s");
        return;
    }
    let ids: Vec<String> = these.iter().map(|wanted| wanted.id.to_string()).collect();
    query.push(format_args!(
        "(SELECT place, found.* FROM generate_series(1, {TOGETHER}) AS place
          CROSS JOIN LATERAL (SELECT * FROM submissions WHERE id = ("
    ));
    query.push_bind(ids).push("::text[])[place] LIMIT 1) AS found) AS s");
}
