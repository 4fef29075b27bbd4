//! Uploads of files that aren't complete: which parts have arrived. The parts are objects elsewhere.

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;

use super::{
    error::{Error, within},
    scoped::Scoped,
    store::Store,
};

/// How long an upload is kept whose client doesn't continue it.
const GIVEN_UP: &str = "interval '1 day'";

/// Which upload: a principal has at most one of each file of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileUpload<'a> {
    pub tenant: &'a str,
    /// Of the whole file, in hex.
    pub sha256: &'a str,
    pub principal: &'a str,
}

/// What has arrived of an upload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Received {
    #[sqlx(try_from = "i64")]
    pub bytes: u64,
    #[sqlx(try_from = "i64")]
    pub parts: u64,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct FilePart {
    /// The key of the object that holds it.
    pub object: String,
    #[sqlx(try_from = "i64")]
    pub size: u64,
}

/// What became of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedPart {
    /// So many bytes have arrived now.
    Added(u64),
    /// The part doesn't begin where the upload ends: it is not needed.
    Elsewhere,
    /// The files of the tenant would take more bytes than it may have. They take this many now.
    Full(u64),
}

impl Scoped {
    /// Returns what has arrived of an upload.
    pub async fn received(&self, upload: FileUpload<'_>) -> Result<Received, Error> {
        let action = "reading an upload";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::new(
            "SELECT received AS bytes, cardinality(objects)::bigint AS parts FROM file_uploads u WHERE tenant = ",
        );
        query.push_bind(upload.tenant).push(" AND sha256 = ").push_bind(upload.sha256);
        query.push(" AND principal = ").push_bind(upload.principal).push(" AND ");
        self.scope.push_condition(&mut query, "u");
        let received = within(action, query.build_query_as().fetch_optional(&mut *connection)).await?;
        Ok(received.unwrap_or_default())
    }
}

impl Store {
    /// Adds a part that begins at `offset` to an upload, unless the upload ends elsewhere, or the tenant has too many bytes in files:
    /// `most` is its quota. The first part begins the upload.
    pub async fn add_file_part(
        &self,
        upload: FileUpload<'_>,
        offset: u64,
        part: &FilePart,
        most: Option<u64>,
    ) -> Result<AddedPart, Error> {
        const TOTAL: &str = "WITH total AS (
                 SELECT CASE WHEN $7::bigint IS NULL THEN 0 ELSE locked_file_bytes($1, NULL) END AS bytes
             )";
        const FIRST: &str = "INSERT INTO file_uploads (tenant, sha256, principal, received, objects, sizes)
                 SELECT $1, $2, $3, $5, ARRAY[$6::text], ARRAY[$5::bigint] FROM total
                 WHERE $4 = 0 AND ($7::bigint IS NULL OR bytes + $5 <= $7)
                 ON CONFLICT DO NOTHING RETURNING received";
        const NEXT: &str = "UPDATE file_uploads SET received = received + $5, objects = objects || $6::text,
                     sizes = sizes || $5::bigint, updated_at = clock_timestamp()
                 FROM total WHERE tenant = $1 AND sha256 = $2 AND principal = $3 AND received = $4
                     AND ($7::bigint IS NULL OR bytes + $5 <= $7)
                 RETURNING received";
        let action = "recording a part of a file";
        let mut connection = self.connection(action).await?;
        let added = if offset == 0 { FIRST } else { NEXT };
        let statement = format!("{TOTAL}, added AS ({added}) SELECT (SELECT received FROM added), bytes FROM total");
        let size = i64::try_from(part.size).unwrap_or(i64::MAX);
        let most = most.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(upload.tenant)
            .bind(upload.sha256)
            .bind(upload.principal)
            .bind(i64::try_from(offset).unwrap_or(i64::MAX))
            .bind(size)
            .bind(&part.object)
            .bind(most)
            .fetch_one(&mut *connection);
        let (received, total): (Option<i64>, i64) = within(action, statement).await.map_err(Error::after_sending)?;
        let unsigned = |number: i64| u64::try_from(number).unwrap_or_default();
        Ok(match received {
            Some(received) => AddedPart::Added(unsigned(received)),
            None if most.is_some_and(|most| total.saturating_add(size) > most) => AddedPart::Full(unsigned(total)),
            None => AddedPart::Elsewhere,
        })
    }

    /// Returns the parts of an upload in their order. The upload isn't given up for another day.
    pub async fn file_parts(&self, upload: FileUpload<'_>) -> Result<Vec<FilePart>, Error> {
        let action = "reading the parts of a file";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "WITH used AS (
                 UPDATE file_uploads SET updated_at = clock_timestamp()
                 WHERE tenant = $1 AND sha256 = $2 AND principal = $3 RETURNING objects, sizes
             )
             SELECT object, size FROM used, unnest(objects, sizes) WITH ORDINALITY AS part (object, size, place)
             ORDER BY place",
        )
        .bind(upload.tenant)
        .bind(upload.sha256)
        .bind(upload.principal)
        .fetch_all(&mut *connection);
        within(action, statement).await
    }

    /// Deletes an upload, and returns the keys of its objects.
    pub async fn delete_file_upload(&self, upload: FileUpload<'_>) -> Result<Vec<String>, Error> {
        let action = "deleting an upload";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_scalar(
            "WITH gone AS (
                 DELETE FROM file_uploads WHERE tenant = $1 AND sha256 = $2 AND principal = $3 RETURNING objects
             )
             SELECT unnest(objects) FROM gone",
        )
        .bind(upload.tenant)
        .bind(upload.sha256)
        .bind(upload.principal)
        .fetch_all(&mut *connection);
        within(action, statement).await
    }

    /// Deletes the uploads of a file that its tenant has, and returns the keys of their objects.
    pub async fn delete_uploads_of_file(&self, tenant: &str, sha256: &str) -> Result<Vec<String>, Error> {
        let action = "deleting the uploads of a file";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_scalar(
            "WITH gone AS (
                 DELETE FROM file_uploads u WHERE tenant = $1 AND sha256 = $2
                     AND EXISTS (SELECT FROM files f WHERE f.tenant = u.tenant AND f.sha256 = u.sha256)
                 RETURNING objects
             )
             SELECT unnest(objects) FROM gone",
        )
        .bind(tenant)
        .bind(sha256)
        .fetch_all(&mut *connection);
        within(action, statement).await
    }

    /// Deletes up to `limit` uploads that no client has continued for a day, and returns the keys of the objects of each. Deletes none
    /// while the clock of the database is past `believed_until`.
    pub async fn delete_given_up_uploads(
        &self,
        limit: u32,
        believed_until: Option<DateTime<Utc>>,
    ) -> Result<Vec<Vec<String>>, Error> {
        let statement = format!(
            "WITH old AS (
                 SELECT tenant, sha256, principal FROM file_uploads
                 WHERE updated_at < now() - {GIVEN_UP} AND ($2::timestamptz IS NULL OR now() <= $2)
                 LIMIT $1 FOR UPDATE SKIP LOCKED
             )
             DELETE FROM file_uploads u USING old
             WHERE (u.tenant, u.sha256, u.principal) = (old.tenant, old.sha256, old.principal) RETURNING u.objects"
        );
        let deleted = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(i64::from(limit))
            .bind(believed_until)
            .fetch_all(&self.patient);
        within("deleting uploads that were given up", deleted).await
    }
}
