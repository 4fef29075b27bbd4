//! The list of a tenant's files, and their deletion by clients.

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;

use super::{Error, Scope, Scoped, error::within, row::ends};

/// A file of a list.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ListedFile {
    /// Its place in the list.
    pub number: i64,
    pub sha256: String,
    #[sqlx(try_from = "i64")]
    pub size: u64,
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    pub last_used_at: DateTime<Utc>,
    /// The live submissions that use it.
    #[sqlx(try_from = "i64")]
    pub submissions: u64,
}

/// What became of a file that is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletedFile {
    /// It is deleted; this was the key of its object.
    Deleted(String),
    /// So many live submissions use it.
    Used(u64),
    /// It exists, and isn't in the scope of those that may be deleted.
    Foreign,
    /// There is none.
    None,
}

impl Scoped {
    /// Returns up to `limit` files of a tenant, the newest first, from those before `before` on.
    pub async fn files(&self, tenant: &str, before: Option<i64>, limit: u32) -> Result<Vec<ListedFile>, Error> {
        let action = "listing files";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::new(
            "SELECT number, sha256, size, created_by, created_at, last_used_at,
                 (SELECT count(*) FROM file_uses u LEFT JOIN submissions s ON s.id = u.submission_id
                  WHERE u.tenant = f.tenant AND u.sha256 = f.sha256 AND NOT coalesce(s.state = ANY(",
        );
        query.push_bind(ends()).push("), false)) AS submissions");
        query.push(" FROM (SELECT *, created_by AS principal FROM files) f WHERE tenant = ").push_bind(tenant);
        query.push(" AND number < ").push_bind(before.unwrap_or(i64::MAX)).push(" AND ");
        self.scope.push_condition(&mut query, "f");
        query.push(" ORDER BY number DESC LIMIT ").push_bind(i64::from(limit));
        within(action, query.build_query_as().fetch_all(&mut *connection)).await
    }

    /// Deletes a file of a tenant, unless a live submission uses it. A file outside `deletable` stays.
    pub async fn delete_file(&self, tenant: &str, sha256: &str, deletable: &Scope) -> Result<DeletedFile, Error> {
        let action = "deleting a file";
        let mut connection = self.store.connection(action).await?;
        let mut find = QueryBuilder::new(
            "SELECT created_by FROM (SELECT *, created_by AS principal FROM files) f WHERE tenant = ",
        );
        find.push_bind(tenant).push(" AND sha256 = ").push_bind(sha256).push(" AND ");
        self.scope.push_condition(&mut find, "f");
        let found: Option<String> = within(action, find.build_query_scalar().fetch_optional(&mut *connection)).await?;
        let Some(created_by) = found else { return Ok(DeletedFile::None) };
        if !deletable.covers(tenant, &created_by) {
            return Ok(DeletedFile::Foreign);
        }
        let deleted = async {
            let mut transaction = sqlx::Connection::begin(&mut *connection).await?;
            // A submission that begins to use the file waits for this lock, and those that use it already are seen below.
            let lock = "SELECT FROM files WHERE tenant = $1 AND sha256 = $2 FOR UPDATE";
            sqlx::query(lock).bind(tenant).bind(sha256).execute(&mut *transaction).await?;
            let release = "DELETE FROM file_uses u USING submissions s
                 WHERE u.tenant = $1 AND u.sha256 = $2 AND s.id = u.submission_id AND s.state = ANY($3)";
            sqlx::query(release).bind(tenant).bind(sha256).bind(ends()).execute(&mut *transaction).await?;
            let count = "SELECT count(*) FROM file_uses WHERE tenant = $1 AND sha256 = $2";
            let uses: i64 = sqlx::query_scalar(count).bind(tenant).bind(sha256).fetch_one(&mut *transaction).await?;
            let delete = "DELETE FROM files WHERE tenant = $1 AND sha256 = $2 AND $3 = 0 RETURNING object";
            let delete = sqlx::query_scalar(delete).bind(tenant).bind(sha256).bind(uses);
            let object: Option<String> = delete.fetch_optional(&mut *transaction).await?;
            transaction.commit().await?;
            Ok::<_, sqlx::Error>((object, uses))
        };
        let (object, uses) = within(action, deleted).await.map_err(Error::after_sending)?;
        Ok(match object {
            Some(object) => DeletedFile::Deleted(object),
            None if uses > 0 => DeletedFile::Used(u64::try_from(uses).unwrap_or_default()),
            None => DeletedFile::None,
        })
    }
}
