//! Accepting a submission.

use sqlx::types::Json;

use super::{Error, Store, error::within};
use crate::{
    spark::{CreateSubmissionRequest, DriverNames, SparkVersion, SubmitterFiles},
    submission::{State, SubmissionId},
};

/// What is fixed when a request is accepted.
#[derive(Debug, Clone)]
pub struct NewSubmission {
    pub request: CreateSubmissionRequest,
    pub spark_version: SparkVersion,
    /// `SPARK_USER` where the request names none.
    pub spark_user: String,
    pub namespace: String,
    pub names: DriverNames,
    pub submitter: SubmitterFiles,
}

impl Store {
    /// Writes the submission and its first event in one statement. When this returns, it is committed.
    pub async fn accept(&self, new: &NewSubmission) -> Result<SubmissionId, Error> {
        let id: String = within(
            "accepting a submission",
            sqlx::query_scalar(
                r#"
            WITH drawn AS (
                SELECT nextval('submission_number') AS number, clock_timestamp() AS now
            ), named AS (
                SELECT number, now, 'driver-' || to_char(now AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISS') || '-'
                    || lpad(number::text, greatest(4, length(number::text)), '0') AS id
                FROM drawn
            ), accepted AS (
                INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user,
                                         submitter_files, created_at)
                SELECT id, number, $1, $2, $3, $4, $5, $6, $7, now FROM named
                RETURNING id, attempt, state, created_at
            )
            INSERT INTO submission_events (submission_id, attempt, state, at)
            SELECT id, attempt, state, created_at FROM accepted
            RETURNING submission_id
            "#,
            )
            .bind(State::Queued.as_str())
            .bind(Json(&new.request))
            .bind(new.spark_version.to_string())
            .bind(&new.namespace)
            .bind(Json(&new.names))
            .bind(&new.spark_user)
            .bind(Json(&new.submitter))
            .fetch_one(&self.pool),
        )
        .await?;
        id.parse().map_err(|source| Error::row(&id, source))
    }
}
