//! How much of the database a tenant may use: what waits, and what its records take.
//!
//! The statement that accepts submissions compares them with the bounds while it holds the tenant's lock, so that concurrent
//! requests don't exceed them (`migrations/0054_records.sql`).

use super::{
    in_queue::InQueue,
    new_submission::NewSubmission,
    tenant_bounds::{TenantBounds, signed},
};
use crate::{
    error::{Error, within},
    store::Store,
};

/// A bound that a tenant has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachedBound {
    Queued {
        most: u64,
    },
    /// `bytes` are those of the records that exist.
    RecordBytes {
        bytes: u64,
        most: u64,
    },
    /// As many submissions wait in the queue.
    Backlog {
        queue: String,
        most: u64,
    },
}

impl NewSubmission {
    /// Returns the bytes that count for it when it is accepted, as the statement does.
    fn bytes(&self) -> u64 {
        let request = serde_json::to_string(&*self.request.redacted()).map_or(0, |text| text.len());
        (request + self.manifest.len() + self.sealed.as_ref().map_or(0, |sealed| sealed.text.len())) as u64
    }
}

impl Store {
    /// Returns which bound a tenant has reached, without its lock: before a request costs more than a read.
    pub async fn reached_bound(&self, tenant: &str, bounds: &TenantBounds) -> Result<Option<ReachedBound>, Error> {
        self.bound_for(tenant, bounds, 1).await
    }

    /// Returns which bound of its tenant a submission would exceed.
    pub(super) async fn bound_of(&self, new: &NewSubmission) -> Result<Option<ReachedBound>, Error> {
        if let Some(InQueue { queue, max_queued: Some(most), .. }) = &new.queue
            && self.is_backlog_full(queue, *most).await?
        {
            return Ok(Some(ReachedBound::Backlog { queue: queue.clone(), most: *most }));
        }
        self.bound_for(&new.tenant, &new.bounds, new.bytes()).await
    }

    /// Returns whether as many submissions wait in a queue, without its lock.
    pub async fn is_backlog_full(&self, queue: &str, most: u64) -> Result<bool, Error> {
        Ok(self.queue_entrance(queue).await?.backlog >= most)
    }

    async fn bound_for(&self, tenant: &str, bounds: &TenantBounds, more: u64) -> Result<Option<ReachedBound>, Error> {
        if bounds.is_none() {
            return Ok(None);
        }
        let action = "comparing a tenant with its limits";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "SELECT (SELECT count(*) FROM (
                 SELECT FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING') AND tenant = $1 LIMIT $2
             ) AS waiting), (SELECT coalesce(sum(bytes), 0)::bigint FROM record_bytes WHERE tenant = $1)",
        )
        .bind(tenant)
        .bind(signed(bounds.queued.unwrap_or_default()))
        .fetch_one(&mut *connection);
        let (queued, bytes): (i64, i64) = within(action, statement).await?;
        let (queued, bytes) = (queued.unsigned_abs(), u64::try_from(bytes).unwrap_or_default());
        Ok(match (bounds.queued, bounds.record_bytes) {
            (Some(most), _) if queued >= most => Some(ReachedBound::Queued { most }),
            (_, Some(most)) if bytes.saturating_add(more) > most => Some(ReachedBound::RecordBytes { bytes, most }),
            _ => None,
        })
    }

    /// Adds bytes of a log to what the record of a submission takes.
    pub async fn add_record_bytes(&self, id: &sparkgate_submission::SubmissionId, bytes: u64) -> Result<(), Error> {
        let statement = sqlx::query(
            "WITH grown AS (
                 UPDATE submissions SET record_bytes = coalesce(record_bytes, 0) + $2 WHERE id = $1 RETURNING tenant
             )
             INSERT INTO record_bytes SELECT tenant, $2 FROM grown",
        )
        .bind(id.as_str())
        .bind(signed(bytes))
        .execute(&self.patient);
        within("adding to the bytes of a record", statement).await?;
        Ok(())
    }

    /// Adds up the changes of tenants that have many, up to `limit` of them.
    pub async fn add_up_record_bytes(&self, limit: u32) -> Result<(), Error> {
        let statement = sqlx::query(
            "WITH these AS (
                 SELECT ctid AS place FROM record_bytes
                 WHERE tenant IN (SELECT tenant FROM record_bytes GROUP BY tenant HAVING count(*) > 100)
                 LIMIT $1 FOR UPDATE SKIP LOCKED
             ), gone AS (
                 DELETE FROM record_bytes r USING these WHERE r.ctid = place RETURNING r.tenant, r.bytes
             )
             INSERT INTO record_bytes SELECT tenant, sum(bytes) FROM gone GROUP BY tenant",
        )
        .bind(i64::from(limit))
        .execute(&self.patient);
        within("adding up the bytes of records", statement).await?;
        Ok(())
    }
}
