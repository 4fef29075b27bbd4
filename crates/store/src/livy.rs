//! The submissions that Livy's clients see: those that came over its API, until such a client deletes them. Their ids there are the
//! numbers of the submissions, which no other submission of the installation ever gets.

use sqlx::{Postgres, QueryBuilder};

use super::{
    error::{Error, within},
    row::readable,
    scoped::Scoped,
    submissions::{COLUMNS, Row, Submission},
};
use sparkgate_submission::SubmissionId;

/// The condition for such a submission. It is that of its index.
const BATCHES: &str = "wire = 'livy' AND livy_deleted_at IS NULL AND ";

/// How a client of Livy names a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LivyBatch<'a> {
    Number(i64),
    /// The newest one of this name.
    Name(&'a str),
}

impl Scoped {
    /// Returns a batch, or `None` if there is none of this number or name.
    pub async fn livy_batch(&self, batch: LivyBatch<'_>) -> Result<Option<Submission>, Error> {
        let action = "reading a batch";
        let mut connection = self.store.connection(action).await?;
        let mut query = self.batches(&format!("SELECT {COLUMNS}"));
        match batch {
            LivyBatch::Number(number) => query.push(" AND number = ").push_bind(number),
            LivyBatch::Name(name) => {
                query.push(" AND name = ").push_bind(name.to_owned()).push(" ORDER BY number DESC LIMIT 1")
            }
        };
        let row: Option<Row> = within(action, query.build_query_as().fetch_optional(&mut *connection)).await?;
        row.map(Submission::try_from).transpose()
    }

    /// Returns up to `limit` batches, the oldest first, without the first `skipped`, and how many there are in all.
    pub async fn livy_batches(&self, skipped: u32, limit: u32) -> Result<(Vec<Submission>, u64), Error> {
        let action = "listing batches";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = self.batches("SELECT count(*)");
        let total: i64 = within(action, query.build_query_scalar().fetch_one(&mut *connection)).await?;
        let mut query = self.batches(&format!("SELECT {COLUMNS}"));
        query.push(" ORDER BY number LIMIT ").push_bind(i64::from(limit));
        query.push(" OFFSET ").push_bind(i64::from(skipped));
        let rows: Vec<Row> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        Ok((readable(rows.into_iter().map(Submission::try_from)), total.unsigned_abs()))
    }

    /// Records that a client of Livy deleted a batch. Repeating it changes nothing.
    pub async fn delete_livy_batch(&self, id: &SubmissionId) -> Result<(), Error> {
        let action = "deleting a batch";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::<Postgres>::new(
            "UPDATE submissions s SET livy_deleted_at = clock_timestamp()
             WHERE wire = 'livy' AND livy_deleted_at IS NULL AND id = ",
        );
        query.push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        within(action, query.build().execute(&mut *connection)).await.map_err(Error::after_sending)?;
        Ok(())
    }

    /// Returns `select` from all batches of the scope.
    fn batches(&self, select: &str) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new(select);
        query.push(" FROM submissions s WHERE ").push(BATCHES);
        self.scope.push_condition(&mut query, "s");
        query
    }
}
