//! Accepting a submission.

use chrono::{DateTime, Utc};
use sqlx::types::Json;

use super::{Error, Store, error::within};
use crate::{
    spark::{CreateSubmissionRequest, DriverNames, SparkVersion},
    submission::{State, SubmissionId},
};

/// An id that no other submission gets, and the time of the database at which it was drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    pub id: SubmissionId,
    pub number: i64,
    pub at: DateTime<Utc>,
}

/// What is fixed when a request is accepted.
#[derive(Debug, Clone)]
pub struct NewSubmission {
    pub drawn: Drawn,
    pub request: CreateSubmissionRequest,
    pub spark_version: SparkVersion,
    /// `SPARK_USER` where the request names none.
    pub spark_user: String,
    pub namespace: String,
    pub names: DriverNames,
    /// The objects to create, as JSON.
    pub manifest: String,
}

impl Store {
    /// Draws an id. Nothing is kept of one that isn't used.
    pub async fn draw(&self) -> Result<Drawn, Error> {
        let action = "drawing a submission's id";
        let mut connection = self.connection(action).await?;
        let statement =
            sqlx::query_as("SELECT nextval('submission_number'), clock_timestamp()").fetch_one(&mut *connection);
        let (number, at): (i64, DateTime<Utc>) = within(action, statement).await?;
        Ok(Drawn { id: SubmissionId::new(at, number), number, at })
    }

    /// Writes the submission, its objects and its first event in one statement. When this returns, it is committed.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if the connection broke after the statement was sent.
    pub async fn accept(&self, new: &NewSubmission) -> Result<(), Error> {
        // What goes wrong before there is a connection leaves no doubt.
        let mut connection = self.connection("accepting a submission").await?;
        let statement = sqlx::query(
            r#"
            WITH accepted AS (
                INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user, created_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                RETURNING id, attempt, state, created_at
            ), rendered AS (
                INSERT INTO manifests (submission_id, objects) SELECT id, $10 FROM accepted
            )
            INSERT INTO submission_events (submission_id, attempt, state, at)
            SELECT id, attempt, state, created_at FROM accepted
            "#,
        )
        .bind(new.drawn.id.as_str())
        .bind(new.drawn.number)
        .bind(State::Queued.as_str())
        .bind(Json(&new.request))
        .bind(new.spark_version.to_string())
        .bind(&new.namespace)
        .bind(Json(&new.names))
        .bind(&new.spark_user)
        .bind(new.drawn.at)
        .bind(&new.manifest)
        .execute(&mut *connection);
        within("accepting a submission", statement).await.map_err(Error::after_sending)?;
        Ok(())
    }
}
