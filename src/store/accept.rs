//! Accepting a submission.

use std::{collections::BTreeMap, io};

use chrono::{DateTime, Utc};
use sqlx::types::Json;

use super::{Error, Store, error::within, row::parse};
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
    /// What it is found by.
    pub name: String,
    pub owner: String,
    pub options: Options,
    /// A digest of the request, by which another one under the same idempotency key is told from the same one.
    pub fingerprint: Vec<u8>,
}

/// What a submission asks of the gateway itself; times in seconds.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub idempotency_key: Option<String>,
    /// No other live submission of its namespace may have its name.
    pub unique_name: bool,
    pub labels: BTreeMap<String, String>,
    pub start_timeout: Option<i32>,
    pub run_timeout: Option<i32>,
    pub kill_grace: Option<i32>,
    pub max_retries_infrastructure: i32,
    pub max_retries_application: i32,
}

/// How often what stands in the way of a submission may have gone when it is looked for.
const TRIES: u32 = 5;

/// What became of a new submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It is committed.
    New(SubmissionId),
    /// Its owner used its idempotency key before: for this one, with that fingerprint.
    SameKey(SubmissionId, Vec<u8>),
    /// This live one has its name.
    SameName(SubmissionId),
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

    /// Writes the submission, its objects and its first event in one statement, unless an earlier one is in its way. When
    /// this returns, it is committed. Of two at once with the same key, the later waits for the earlier.
    ///
    /// # Errors
    /// [`Error::InDoubt`] if the connection broke after the statement was sent.
    pub async fn accept(&self, new: &NewSubmission) -> Result<Accepted, Error> {
        let key = new.options.idempotency_key.as_deref();
        for _ in 0..TRIES {
            if self.insert(new).await? {
                return Ok(Accepted::New(new.drawn.id.clone()));
            }
            if let Some(key) = key
                && let Some((id, fingerprint)) = self.of_key(&new.owner, key).await?
            {
                return Ok(Accepted::SameKey(id, fingerprint));
            }
            if new.options.unique_name
                && let Some(id) = self.live_of_name(&new.namespace, &new.name).await?
            {
                return Ok(Accepted::SameName(id));
            }
            // What was in its way has gone meanwhile.
        }
        let why = io::Error::other("another submission is in its way again and again");
        Err(Error::row(new.drawn.id.as_str(), why))
    }

    /// `false` if a unique key of another submission is in the way.
    async fn insert(&self, new: &NewSubmission) -> Result<bool, Error> {
        // What goes wrong before there is a connection leaves no doubt.
        let mut connection = self.connection("accepting a submission").await?;
        let options = &new.options;
        let statement = sqlx::query(
            r#"
            WITH accepted AS (
                INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user, created_at,
                    queued_at, name, owner, labels, unique_name, idempotency_key, fingerprint, start_timeout, run_timeout,
                    kill_grace, deadline, max_retries_infrastructure, max_retries_application)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $11, $12, $13, $14, $15, $16, $17::integer, $18,
                    $19, $9 + make_interval(secs => $17::integer), $20, $21)
                ON CONFLICT DO NOTHING
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
        .bind(&new.name)
        .bind(&new.owner)
        .bind(Json(&options.labels))
        .bind(options.unique_name)
        .bind(&options.idempotency_key)
        .bind(&new.fingerprint)
        .bind(options.start_timeout)
        .bind(options.run_timeout)
        .bind(options.kill_grace)
        .bind(options.max_retries_infrastructure)
        .bind(options.max_retries_application)
        .execute(&mut *connection);
        let inserted = within("accepting a submission", statement).await.map_err(Error::after_sending)?;
        Ok(inserted.rows_affected() == 1)
    }

    /// The submission that an owner's idempotency key stands for, and the fingerprint of its request.
    pub async fn of_key(&self, owner: &str, key: &str) -> Result<Option<(SubmissionId, Vec<u8>)>, Error> {
        let action = "looking for an idempotency key";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "SELECT id, coalesce(fingerprint, '') FROM submissions WHERE owner = $1 AND idempotency_key = $2",
        )
        .bind(owner)
        .bind(key)
        .fetch_optional(&mut *connection);
        let row: Option<(String, Vec<u8>)> = within(action, statement).await?;
        row.map(|(id, fingerprint)| Ok((parse(&id, &id)?, fingerprint))).transpose()
    }

    async fn live_of_name(&self, namespace: &str, name: &str) -> Result<Option<SubmissionId>, Error> {
        let action = "looking for a live submission's name";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_scalar(
            "SELECT id FROM submissions WHERE namespace = $1 AND name = $2 AND unique_name
             AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')",
        )
        .bind(namespace)
        .bind(name)
        .fetch_optional(&mut *connection);
        let id: Option<String> = within(action, statement).await?;
        id.map(|id| parse(&id, &id)).transpose()
    }
}
