//! Accepting a submission.

use chrono::Utc;
use uuid::Uuid;

use super::{Error, Gateway};
use crate::{
    spark::{CreateSubmissionRequest, DriverNames, NameEntropy, Refusal, SubmitContext, build_driver},
    store::NewSubmission,
    submission::SubmissionId,
};

impl Gateway {
    /// Checks the request by building its driver once, fixes all names and commits it. The launch follows by itself.
    ///
    /// # Errors
    /// [`Error::Refused`] for a request that can't become a driver: nothing is kept of it. Otherwise nothing is known to
    /// be kept, but after a lost connection to the database it may be.
    pub async fn create(&self, request: CreateSubmissionRequest) -> Result<SubmissionId, Error> {
        let request = self.spark.with_defaults(request);
        let now = Utc::now();
        let entropy = NameEntropy::from_uuids(Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
        let names = DriverNames::for_request(&request, now.timestamp_millis(), &entropy)?;
        let version = self.spark.version;
        let context = SubmitContext { version, names: names.clone(), submitted_at: now, user: self.spark.user.clone() };
        let namespace = build_driver(&request, &context)?.namespace;
        if !self.cluster.watches(&namespace) {
            let allowed = self.cluster.namespaces().join(", ");
            let reason = format!("`{namespace}` is not a namespace of this gateway: it serves {allowed}");
            return Err(Refusal::property("spark.kubernetes.namespace", reason).into());
        }
        let id = self.store.accept(&NewSubmission { request, spark_version: version, namespace, names }).await?;
        tracing::info!(submission = %id, "accepted");
        self.wake.notify_one();
        Ok(id)
    }
}
