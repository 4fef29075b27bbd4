//! The cluster that the database belongs to.

use std::collections::BTreeMap;

use super::{
    error::{Error, within},
    store::Store,
};

/// The previous release doesn't know the table, and doesn't write it.
const ACTION: &str = "comparing the cluster with the one that the database belongs to";

impl Store {
    /// Returns the uids that identify the database's cluster, by namespace.
    pub async fn cluster_namespaces(&self) -> Result<BTreeMap<String, String>, Error> {
        let statement = sqlx::query_as("SELECT namespace, uid FROM cluster_namespaces").fetch_all(&self.patient);
        let rows: Vec<(String, String)> = within(ACTION, statement).await?;
        Ok(rows.into_iter().collect())
    }

    /// Stores uids that identify the cluster. Uids of known namespaces remain unchanged unless `replaced` is set.
    pub async fn keep_cluster_namespaces(&self, uids: &BTreeMap<String, String>, replaced: bool) -> Result<(), Error> {
        let (namespaces, uids): (Vec<_>, Vec<_>) = uids.iter().unzip();
        let statement = sqlx::query(
            "INSERT INTO cluster_namespaces AS known (namespace, uid) SELECT * FROM unnest($1::text[], $2::text[])
             ON CONFLICT (namespace) DO UPDATE SET uid = excluded.uid WHERE $3 AND known.uid <> excluded.uid",
        )
        .bind(namespaces)
        .bind(uids)
        .bind(replaced)
        .execute(&self.patient);
        within(ACTION, statement).await?;
        Ok(())
    }

    /// Deletes the identity of the cluster, and the positions of its watches.
    pub async fn forget_cluster(&self) -> Result<(), Error> {
        let statement = sqlx::query("WITH positions AS (DELETE FROM watch_positions) DELETE FROM cluster_namespaces")
            .execute(&self.patient);
        within("forgetting the cluster of the database", statement).await?;
        Ok(())
    }

    /// Returns how many submissions may have a live driver pod.
    pub async fn count_with_a_driver(&self) -> Result<u64, Error> {
        let statement = sqlx::query_scalar(
            "SELECT count(*) FROM submissions WHERE state IN ('LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')",
        )
        .fetch_one(&self.patient);
        let count: i64 = within("counting submissions that have a driver", statement).await?;
        Ok(count.unsigned_abs())
    }
}
