//! The list of a tenant's files, and their deletion by clients.

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;

use super::{
    error::{Error, within},
    row::ends,
    scope::Scope,
    scoped::Scoped,
};

/// How often the deletion of a file is tried again that submissions begin to use at the same moment.
const TRIES: u32 = 3;

/// A file of a list.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ListedFile {
    /// Its place in the list.
    pub number: i64,
    pub sha256: String,
    #[sqlx(try_from = "i64")]
    pub size: u64,
    /// The name under which a submission used it last; `None` if none did.
    pub name: Option<String>,
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
                 coalesce((SELECT max(name) FROM file_uses u WHERE u.tenant = f.tenant AND u.sha256 = f.sha256), name) AS name,
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
        // The uses of submissions that have ended are released later than these end.
        let delete = "WITH uses AS (
                 SELECT submission_id, coalesce(state = ANY($3), false) AS ended
                 FROM file_uses u LEFT JOIN submissions s ON s.id = u.submission_id
                 WHERE u.tenant = $1 AND u.sha256 = $2
             ), live AS (
                 SELECT count(*) AS live_uses FROM uses WHERE NOT ended
             ), released AS (
                 DELETE FROM file_uses u USING uses, live
                 WHERE u.sha256 = $2 AND u.submission_id = uses.submission_id AND live_uses = 0
             ), deleted AS (
                 DELETE FROM files USING live WHERE tenant = $1 AND sha256 = $2 AND live_uses = 0 RETURNING object
             )
             SELECT (SELECT object FROM deleted), live_uses FROM live";
        let mut tries = 0;
        let (object, uses): (Option<String>, i64) = loop {
            let deleted = sqlx::query_as(delete).bind(tenant).bind(sha256).bind(ends()).fetch_one(&mut *connection);
            match within(action, deleted).await.map_err(Error::after_sending) {
                // A submission began to use the file meanwhile.
                Err(error) if error.is_of_reference() && tries < TRIES => tries += 1,
                Err(error) if error.is_of_reference() => break (None, 1),
                deleted => break deleted?,
            }
        };
        Ok(match object {
            Some(object) => DeletedFile::Deleted(object),
            None if uses > 0 => DeletedFile::Used(u64::try_from(uses).unwrap_or_default()),
            None => DeletedFile::None,
        })
    }
}
