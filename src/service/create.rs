//! Accepting a submission.

use uuid::Uuid;

use super::{Error, Gateway, limits};
use crate::{
    cluster::{Manifest, Marks},
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
        let (mut request, submitter) = self.spark.resolve(&request)?;
        limits::properties(&request)?;
        let version = self.spark.version;
        let drawn = self.store.draw().await?;
        let marks = Marks {
            submission: drawn.id.clone(),
            attempt: 1,
            instance: self.instance,
            finalizer: self.outcome_finalizer,
        };
        let entropy = NameEntropy::from_uuids(Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
        let names = DriverNames::for_request(&request, version, drawn.at.timestamp_millis(), &entropy)?;
        let context = SubmitContext {
            version,
            names: names.clone(),
            submitted_at: drawn.at,
            user: self.spark.user.clone(),
            submitter,
        };
        let asked_for = request.spark_properties.clone();
        for (label, value) in marks.labels() {
            request.spark_properties.insert(format!("spark.kubernetes.executor.label.{label}"), value);
        }
        let driver = build_driver(&request, &context)?;
        request.spark_properties = asked_for;
        limits::check(&request, &names, &driver, &self.cluster)?;
        let manifest = Manifest::new(&driver, &marks).and_then(|manifest| serde_json::to_string(&manifest));
        let manifest = manifest.map_err(|error| Error::Internal("writing the objects as JSON".into(), error.into()))?;
        let new = NewSubmission {
            drawn,
            request,
            spark_version: version,
            spark_user: context.user,
            namespace: driver.namespace,
            names,
            manifest,
        };
        let new = self.accept(new).await?;
        let id = new.drawn.id;
        let pod = format_args!("{}/{}", new.namespace, new.names.driver_pod);
        tracing::info!(submission = %id, %pod, "accepted");
        let unknown = new.request.spark_properties.keys().filter(|key| !keys::is_known(key));
        let unknown: Vec<&String> = unknown.take(MISSPELT_MAX).collect();
        if !unknown.is_empty() {
            tracing::info!(submission = %id, ?unknown, "no Spark knows these properties: are they misspelt?");
        }
        self.wake.notify_one();
        self.events.changed();
        Ok(id)
    }

    /// Commits it in a task of its own: a client that hangs up meanwhile must not tear the statement off.
    async fn accept(&self, new: NewSubmission) -> Result<NewSubmission, Error> {
        let store = self.store.clone();
        let accepted = tokio::spawn(async move { store.accept(&new).await.map(|()| new) });
        let accepted =
            accepted.await.map_err(|error| Error::Internal("accepting a submission".into(), error.into()))?;
        Ok(accepted?)
    }
}
