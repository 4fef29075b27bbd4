//! Accepting a submission.

use chrono::Utc;
use uuid::Uuid;

use super::{Error, Gateway, limits};
use crate::{
    spark::{CreateSubmissionRequest, DriverNames, NameEntropy, SubmitContext, build_driver, keys},
    store::NewSubmission,
    submission::SubmissionId,
};

/// How many unknown properties of one request are logged.
const MISSPELT_MAX: usize = 20;

impl Gateway {
    /// Checks the request by building its driver once, fixes all names and commits it. The launch follows by itself.
    ///
    /// # Errors
    /// [`Error::Refused`] for a request that can't become a driver: nothing is kept of it. [`Error::InDoubt`] where the
    /// database went away during the write: it may be kept.
    pub async fn create(&self, request: CreateSubmissionRequest) -> Result<SubmissionId, Error> {
        limits::arguments(&request)?;
        let (request, submitter) = self.spark.resolve(&request)?;
        limits::properties(&request)?;
        let now = Utc::now();
        let entropy = NameEntropy::from_uuids(Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
        let names = DriverNames::for_request(&request, self.spark.version, now.timestamp_millis(), &entropy)?;
        let version = self.spark.version;
        let context = SubmitContext {
            version,
            names: names.clone(),
            submitted_at: now,
            user: self.spark.user.clone(),
            submitter,
        };
        let driver = build_driver(&request, &context)?;
        limits::check(&request, &names, &driver, &self.cluster)?;
        let new = NewSubmission {
            request,
            spark_version: version,
            spark_user: context.user,
            namespace: driver.namespace,
            names,
            submitter: context.submitter,
        };
        let id = self.store.accept(&new).await.map_err(|error| match error.in_doubt() {
            true => Error::InDoubt(error),
            false => error.into(),
        })?;
        let pod = format_args!("{}/{}", new.namespace, new.names.driver_pod);
        tracing::info!(submission = %id, %pod, "accepted");
        let unknown = new.request.spark_properties.keys().filter(|key| !keys::is_known(key));
        let unknown: Vec<&String> = unknown.take(MISSPELT_MAX).collect();
        if !unknown.is_empty() {
            tracing::info!(submission = %id, ?unknown, "no Spark knows these properties: are they misspelt?");
        }
        self.wake.notify_one();
        Ok(id)
    }
}
