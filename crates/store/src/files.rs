//! Uploaded files: which exist, and which submissions use them. Their content is in objects elsewhere.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;

use super::{
    error::{Error, within},
    row::ends,
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::SubmissionId;

/// How long the uses of a submission that wasn't accepted are kept: longer than it takes to accept one.
const UNACCEPTED: &str = "interval '1 hour'";

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct FileRecord {
    /// In hex.
    pub sha256: String,
    #[sqlx(try_from = "i64")]
    pub size: u64,
    /// The key of the object that holds its content.
    pub object: String,
}

/// A file that was uploaded completely.
#[derive(Debug, Clone)]
pub struct NewFile {
    pub tenant: String,
    pub principal: String,
    pub record: FileRecord,
}

/// What became of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedFile {
    Added,
    /// The tenant had this file already: the new object is not needed.
    Existing,
    /// The files of the tenant would take more bytes than it may have. They take this many now.
    Full(u64),
}

/// A file of a submission.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UsedFile {
    #[sqlx(flatten)]
    pub file: FileRecord,
    /// The tenant that it belongs to.
    pub owner: String,
    /// Whether the submission has ended.
    pub ended: bool,
    /// When the submission was accepted.
    pub accepted_at: DateTime<Utc>,
}

impl Scoped {
    /// Returns a file of a tenant.
    pub async fn file(&self, tenant: &str, sha256: &str) -> Result<Option<FileRecord>, Error> {
        let action = "reading a file";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::new(
            "SELECT sha256, size, object FROM (SELECT *, created_by AS principal FROM files) f WHERE tenant = ",
        );
        query.push_bind(tenant).push(" AND sha256 = ").push_bind(sha256).push(" AND ");
        self.scope.push_condition(&mut query, "f");
        within(action, query.build_query_as().fetch_optional(&mut *connection)).await
    }
}

impl Store {
    /// Makes an object the content of a file, unless the tenant has that file, or too many bytes in files: `most` is its quota. The
    /// parts of other uploads count. The object replaces `lost`, which is gone.
    pub async fn add_file(&self, new: &NewFile, most: Option<u64>, lost: Option<&str>) -> Result<AddedFile, Error> {
        let action = "recording a file";
        let mut connection = self.connection(action).await?;
        let NewFile { tenant, principal, record } = new;
        let statement = sqlx::query_as(
            "WITH total AS (
                 SELECT CASE WHEN $6::bigint IS NULL THEN 0 ELSE locked_file_bytes($1, $2) END AS bytes
             ), added AS (
                 INSERT INTO files (tenant, sha256, size, object, created_by)
                 SELECT $1, $2, $3, $4, $5 FROM total
                 WHERE $6 IS NULL OR bytes + $3 <= $6
                     OR EXISTS (SELECT FROM files WHERE tenant = $1 AND sha256 = $2)
                 ON CONFLICT (tenant, sha256) DO UPDATE SET last_used_at = clock_timestamp(),
                     object = CASE WHEN files.object = $7 THEN excluded.object ELSE files.object END
                 RETURNING object
             )
             SELECT (SELECT object FROM added), bytes FROM total",
        )
        .bind(tenant)
        .bind(&record.sha256)
        .bind(i64::try_from(record.size).unwrap_or(i64::MAX))
        .bind(&record.object)
        .bind(principal)
        .bind(most.map(|most| i64::try_from(most).unwrap_or(i64::MAX)))
        .bind(lost)
        .fetch_one(&mut *connection);
        let (object, total): (Option<String>, i64) = within(action, statement).await.map_err(Error::after_sending)?;
        Ok(match object {
            Some(object) if object == record.object => AddedFile::Added,
            Some(_) => AddedFile::Existing,
            None => AddedFile::Full(u64::try_from(total).unwrap_or_default()),
        })
    }

    /// Returns a file that is uploaded again, and notes about once an hour that it is used.
    pub async fn touch_file(&self, tenant: &str, sha256: &str) -> Result<Option<FileRecord>, Error> {
        let action = "reading a file";
        let mut connection = self.connection(action).await?;
        // Concurrent uploads of one file don't wait for each other.
        let statement = sqlx::query_as(
            "WITH used AS (
                 UPDATE files SET last_used_at = clock_timestamp()
                 WHERE (tenant, sha256) = (SELECT tenant, sha256 FROM files WHERE tenant = $1 AND sha256 = $2
                     AND last_used_at < clock_timestamp() - interval '1 hour' FOR NO KEY UPDATE SKIP LOCKED)
             )
             SELECT sha256, size, object FROM files WHERE tenant = $1 AND sha256 = $2",
        )
        .bind(tenant)
        .bind(sha256)
        .fetch_optional(&mut *connection);
        within(action, statement).await
    }

    /// Returns how many bytes the files of a tenant have, and the parts of its uploads.
    pub async fn file_bytes(&self, tenant: &str) -> Result<u64, Error> {
        let action = "adding up the files of a tenant";
        let mut connection = self.connection(action).await?;
        let sum = sqlx::query_scalar(
            "SELECT (coalesce((SELECT sum(size) FROM files WHERE tenant = $1), 0)
                 + coalesce((SELECT sum(received) FROM file_uploads WHERE tenant = $1), 0))::bigint",
        );
        let bytes: i64 = within(action, sum.bind(tenant).fetch_one(&mut *connection)).await?;
        Ok(u64::try_from(bytes).unwrap_or_default())
    }

    /// Returns those files of a tenant that exist.
    pub async fn files_of_tenant(&self, tenant: &str, sha256: &[String]) -> Result<Vec<FileRecord>, Error> {
        let action = "reading files";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as("SELECT sha256, size, object FROM files WHERE tenant = $1 AND sha256 = ANY($2)");
        within(action, statement.bind(tenant).bind(sha256).fetch_all(&mut *connection)).await
    }

    /// Records that a submission uses files of its tenant, by SHA-256 with the name that it gives each, and returns those that exist. Called
    /// before the submission is accepted.
    pub async fn use_files(
        &self,
        id: &SubmissionId,
        tenant: &str,
        files: &BTreeMap<String, String>,
    ) -> Result<Vec<FileRecord>, Error> {
        let action = "recording the files of a submission";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "WITH found AS (
                 SELECT sha256, size, object FROM files WHERE tenant = $2 AND sha256 = ANY($3)
                 ORDER BY sha256 FOR KEY SHARE
             ), used AS (
                 INSERT INTO file_uses (submission_id, tenant, sha256, name)
                 SELECT $1, $2, sha256, given.name FROM found JOIN unnest($3::text[], $4::text[]) AS given (sha256, name) USING (sha256)
                 ON CONFLICT DO NOTHING
             )
             SELECT * FROM found",
        )
        .bind(id.as_str())
        .bind(tenant)
        .bind(files.keys().collect::<Vec<_>>())
        .bind(files.values().collect::<Vec<_>>())
        .fetch_all(&mut *connection);
        within(action, statement).await
    }

    /// Returns the files that a submission uses, for its launch.
    pub async fn files_of(&self, id: &SubmissionId) -> Result<Vec<FileRecord>, Error> {
        let statement = sqlx::query_as(
            "SELECT sha256, size, object FROM file_uses JOIN files USING (tenant, sha256) WHERE submission_id = $1",
        )
        .bind(id.as_str())
        .fetch_all(&self.patient);
        within("reading the files of a submission", statement).await
    }

    /// Returns a file that a submission uses, for the bearer of a signed URL of it.
    pub async fn used_file(&self, id: &SubmissionId, sha256: &str) -> Result<Option<UsedFile>, Error> {
        let action = "reading a file of a submission";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "SELECT sha256, size, object, files.tenant AS owner, state = ANY($3) AS ended, submissions.created_at AS accepted_at
             FROM file_uses JOIN files USING (tenant, sha256) JOIN submissions ON id = submission_id
             WHERE submission_id = $1 AND sha256 = $2",
        )
        .bind(id.as_str())
        .bind(sha256)
        .bind(ends())
        .fetch_optional(&mut *connection);
        within(action, statement).await
    }

    /// Ends up to `limit` uses of files by submissions that have ended, or were never accepted. Their files count as used until now.
    /// The time is the earlier one of the database's and this machine's clocks, one of which may be ahead.
    pub async fn release_files(&self, limit: u32) -> Result<u64, Error> {
        let statement = format!(
            "WITH ended AS (
                 SELECT submission_id, u.tenant, sha256 FROM file_uses u LEFT JOIN submissions s ON s.id = submission_id
                 WHERE s.state = ANY($1) OR (s.id IS NULL AND u.created_at < least(now(), $3) - {UNACCEPTED})
                 LIMIT $2
             ), released AS (
                 DELETE FROM file_uses u USING ended e
                 WHERE u.submission_id = e.submission_id AND u.sha256 = e.sha256 RETURNING u.tenant, u.sha256, u.name
             ), unused AS (
                 SELECT tenant, sha256, r.name FROM files
                 JOIN (SELECT tenant, sha256, max(name) AS name FROM released GROUP BY 1, 2) r USING (tenant, sha256)
                 ORDER BY tenant, sha256 FOR NO KEY UPDATE OF files
             ), noted AS (
                 UPDATE files f SET last_used_at = clock_timestamp(), name = coalesce(u.name, f.name) FROM unused u
                 WHERE f.tenant = u.tenant AND f.sha256 = u.sha256
             )
             SELECT count(*) FROM released"
        );
        let released = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(ends())
            .bind(i64::from(limit))
            .bind(Utc::now())
            .fetch_one(&self.patient);
        let released: i64 = within("releasing files", released).await?;
        Ok(u64::try_from(released).unwrap_or_default())
    }

    /// Releases the files of a submission that wasn't accepted.
    pub async fn release_files_of(&self, id: &SubmissionId) -> Result<(), Error> {
        let action = "releasing the files of a submission";
        let mut connection = self.connection(action).await?;
        let released = sqlx::query(
            "DELETE FROM file_uses WHERE submission_id = $1 AND NOT EXISTS (SELECT FROM submissions WHERE id = $1)",
        );
        within(action, released.bind(id.as_str()).execute(&mut *connection)).await?;
        Ok(())
    }

    /// Deletes up to `limit` files that no submission uses, and that weren't used for `age`. Returns the keys of their objects. A
    /// file that is being used again stays. Deletes none while the clock of the database is past `believed_until`.
    pub async fn delete_unused_files(
        &self,
        age: Duration,
        limit: u32,
        believed_until: Option<DateTime<Utc>>,
    ) -> Result<Vec<String>, Error> {
        let statement = sqlx::query_scalar(
            "WITH old AS (
                 SELECT tenant, sha256 FROM files f
                 WHERE last_used_at < now() - make_interval(secs => $1)
                   AND ($3::timestamptz IS NULL OR now() <= $3)
                   AND NOT EXISTS (SELECT FROM file_uses u WHERE u.tenant = f.tenant AND u.sha256 = f.sha256)
                 LIMIT $2 FOR UPDATE SKIP LOCKED
             )
             DELETE FROM files f USING old WHERE f.tenant = old.tenant AND f.sha256 = old.sha256
             RETURNING object",
        )
        .bind(age.as_secs_f64())
        .bind(i64::from(limit))
        .bind(believed_until)
        .fetch_all(&self.patient);
        within("deleting unused files", statement).await
    }

    /// Returns those objects that no file has, and no upload.
    pub async fn orphaned_objects(&self, objects: &[String]) -> Result<Vec<String>, Error> {
        let statement = sqlx::query_scalar(
            "SELECT key FROM unnest($1::text[]) AS o (key) WHERE NOT EXISTS (SELECT FROM files WHERE object = key)
                 AND NOT EXISTS (SELECT FROM file_uploads WHERE key = ANY(objects))",
        )
        .bind(objects)
        .fetch_all(&self.patient);
        within("looking for objects without a file", statement).await
    }
}
