//! Launching: from a committed row to a driver in the cluster, safe to repeat at every point.

use super::{Error, Gateway, error::chain, work::Backoff};
use crate::{
    cluster::{self, Found, labels},
    spark::{DriverObjects, Refusal, SubmitContext, build_driver},
    store::Claimed,
    submission::{Outcome, Placement, Progress, State},
};

/// Why an attempt to launch did not end with a driver.
enum Stopped {
    /// Repeating can't help. A pod that was made already has to go again.
    ForGood { outcome: Outcome, pod: Option<String> },
    /// The cluster gave no answer: the same objects are tried again under the same names.
    ForNow(cluster::Error),
    /// The database failed; the claim runs out.
    Store(Error),
}

impl Gateway {
    pub(super) async fn launch(&self, claimed: &Claimed) -> Result<Backoff, Error> {
        let Claimed { id, attempt, namespace, names, .. } = claimed;
        match self.ensure_driver(claimed).await {
            Ok(uid) => {
                let placement = Placement { pod_uid: Some(uid), ..Placement::default() };
                self.store.advance(id, *attempt, &Progress::Launched, &placement).await?;
                tracing::info!(submission = %id, pod = %format_args!("{namespace}/{}", names.driver_pod), "launched");
            }
            Err(Stopped::ForGood { outcome, pod }) => {
                tracing::warn!(submission = %id, "not launched: {}", outcome.message);
                // The end first: whoever sees the pod go then knows why.
                self.store.advance(id, *attempt, &Progress::Ended(outcome), &Placement::default()).await?;
                if let Some(uid) = pod {
                    self.cluster.delete_pod(namespace, &names.driver_pod, &uid).await?;
                }
            }
            Err(Stopped::ForNow(error)) => return Ok(Backoff::failed(claimed, &error)),
            Err(Stopped::Store(error)) => return Err(error),
        }
        Ok(Backoff::None)
    }

    /// Makes sure that the driver pod and everything beside it exist; answers the pod's uid. The uid is recorded before
    /// anything beside the pod is made, above all the `ConfigMap` without which the driver can't start: from then on no
    /// other pod is ever made for this attempt. If the cluster refuses a later object the pod goes again, as with
    /// spark-submit.
    async fn ensure_driver(&self, claimed: &Claimed) -> Result<String, Stopped> {
        let Claimed { id, attempt, namespace, names, .. } = claimed;
        if !self.cluster.watches(namespace) {
            let message = format!("this gateway no longer serves the namespace {namespace} (--namespaces)");
            return Err(refused("NamespaceNotServed", message));
        }
        // An older release may have accepted what this one refuses, and may have made its pod.
        let driver = built(claimed).map_err(|refusal| Stopped::ForGood {
            outcome: Outcome::new(State::Error, "Refused", refusal.to_string()),
            pod: claimed.pod_uid.clone(),
        })?;
        let uid = match &claimed.pod_uid {
            Some(uid) => self.find_made(claimed, uid).await?,
            None => self.make_first(claimed, &driver).await?,
        };
        if !self.store.record_pod(id, *attempt, &uid).await.map_err(|error| Stopped::Store(error.into()))? {
            let action = format!("creating the driver pod {namespace}/{}", names.driver_pod);
            let message = "another worker made one meanwhile".to_owned();
            return Err(Stopped::ForNow(cluster::Error::Conflict { action, message }));
        }
        // From here on a refusal takes the pod along.
        let with_pod = |error| match stopped(error) {
            Stopped::ForGood { outcome, .. } => Stopped::ForGood { outcome, pod: Some(uid.clone()) },
            other => other,
        };
        for object in &driver.pre_resources {
            self.cluster.give_to_pod(namespace, object, &names.driver_pod, &uid).await.map_err(with_pod)?;
        }
        for object in &driver.resources {
            self.cluster.create_owned(namespace, object, &names.driver_pod, &uid).await.map_err(with_pod)?;
        }
        Ok(uid)
    }

    /// Creates what the pod needs to be scheduled, then the pod. If one of them is refused, none stays.
    async fn make_first(&self, claimed: &Claimed, driver: &DriverObjects) -> Result<String, Stopped> {
        let made = async {
            for object in &driver.pre_resources {
                let created = self.cluster.create_before_pod(&claimed.namespace, object, &claimed.id).await;
                created.map_err(stopped)?;
            }
            self.make_pod(claimed, driver).await
        };
        let made = made.await;
        if let Err(Stopped::ForGood { .. }) = &made {
            self.delete_pre_resources(claimed, driver).await.map_err(Stopped::ForNow)?;
        }
        made
    }

    /// Deletes what was made for a pod that there will never be. Where the cluster forbids that for good (it may have
    /// forbidden making it, too) the submission ends all the same.
    async fn delete_pre_resources(&self, claimed: &Claimed, driver: &DriverObjects) -> Result<(), cluster::Error> {
        for object in &driver.pre_resources {
            match self.cluster.delete_before_pod(&claimed.namespace, object, &claimed.id).await {
                Err(error @ cluster::Error::Refused { .. }) => {
                    tracing::warn!(submission = %claimed.id, "left behind, if it was made: {}", chain(&error));
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// The same for a claimed row that is killed before it had a pod.
    pub(super) async fn forget_pre_resources(&self, claimed: &Claimed) -> Result<(), cluster::Error> {
        match built(claimed) {
            Ok(driver) => self.delete_pre_resources(claimed, &driver).await,
            // What this release can't build it can't name either. Only an older one that accepted it may have made it.
            Err(_) => Ok(()),
        }
    }

    /// Creates the pod. One of that name that carries our id is the one an earlier try made.
    async fn make_pod(&self, claimed: &Claimed, driver: &DriverObjects) -> Result<String, Stopped> {
        let Claimed { id, attempt, namespace, names, .. } = claimed;
        let (action, message) = match self.cluster.create_pod(namespace, &driver.pod, id, *attempt).await {
            Err(cluster::Error::AlreadyExists { action, message }) => (action, message),
            other => return other.map_err(stopped),
        };
        match self.cluster.find_driver(namespace, &names.driver_pod, id, *attempt).await.map_err(stopped)? {
            Found::Ours(seen) => Ok(seen.pod_uid),
            Found::Foreign => {
                Err(refused("AlreadyExists", format!("{action}: {message}, and it isn't this submission's")))
            }
            // It went between the two calls, before it could start: its name is free for the next try.
            Found::Nothing => Err(Stopped::ForNow(cluster::Error::Conflict { action, message })),
        }
    }

    /// The pod that an earlier try made and recorded. If it is gone it may have run: it is never made again.
    async fn find_made(&self, claimed: &Claimed, uid: &str) -> Result<String, Stopped> {
        let Claimed { id, attempt, namespace, names, .. } = claimed;
        match self.cluster.find_driver(namespace, &names.driver_pod, id, *attempt).await.map_err(stopped)? {
            Found::Ours(seen) if seen.pod_uid == uid => Ok(seen.pod_uid),
            Found::Ours(_) | Found::Foreign | Found::Nothing => {
                Err(Stopped::ForGood { outcome: Outcome::pod_gone(), pod: None })
            }
        }
    }
}

/// The same objects each time: all that they depend on is in the row.
fn built(claimed: &Claimed) -> Result<DriverObjects, Refusal> {
    let mut request = claimed.request.clone();
    for (label, value) in
        [(labels::SUBMISSION_ID, claimed.id.to_string()), (labels::ATTEMPT, claimed.attempt.to_string())]
    {
        request.spark_properties.insert(format!("spark.kubernetes.executor.label.{label}"), value);
    }
    let context = SubmitContext {
        version: claimed.spark_version,
        names: claimed.names.clone(),
        submitted_at: claimed.created_at,
        user: claimed.spark_user.clone(),
        submitter: claimed.submitter.clone(),
    };
    build_driver(&request, &context)
}

fn refused(reason: &str, message: String) -> Stopped {
    Stopped::ForGood { outcome: Outcome::new(State::Error, reason, message), pod: None }
}

/// Sorts a failed call: a `404` on a create means that the namespace isn't there.
fn stopped(error: cluster::Error) -> Stopped {
    let reason = match &error {
        cluster::Error::Unavailable { .. } | cluster::Error::Conflict { .. } => return Stopped::ForNow(error),
        cluster::Error::NotFound { .. } => "NotFound",
        cluster::Error::AlreadyExists { .. } => "AlreadyExists",
        cluster::Error::Refused { reason, .. } => reason,
    };
    refused(reason, chain(&error))
}
