//! Accepting a submission.

use std::{io, mem};

use sha2::{Digest, Sha256};

use super::{Error, Gateway, Plan, Resolved, SubmissionOptions};
use crate::{
    spark::{CreateSubmissionRequest, keys},
    store::{self, Found, NewSubmission},
    submission::SubmissionId,
};

/// How many unknown properties of one request are logged.
const MISSPELT_MAX: usize = 20;
/// How often a number may turn out to be taken. The first time moves the sequence past all of them.
const TRIES: u32 = 5;

/// A submission that is kept.
#[derive(Debug)]
pub struct Accepted {
    pub submission: Found,
    /// It was accepted before, under the same idempotency key.
    pub replayed: bool,
}

impl Gateway {
    /// [`Gateway::submit`] for a request that says all it wants in its properties.
    ///
    /// # Errors
    /// As there.
    pub async fn create(&self, request: CreateSubmissionRequest) -> Result<SubmissionId, Error> {
        Ok(self.submit(request, SubmissionOptions::default()).await?.submission.id)
    }

    /// Checks the request by building its driver once, fixes all names and commits it. The launch follows by itself.
    /// `options` win over what the properties ask for.
    ///
    /// # Errors
    /// [`Error::Refused`] for a request that can't become a driver: nothing is kept of it. [`Error::KeyReused`] and
    /// [`Error::NameTaken`] for one that is at odds with an earlier one. [`Error::InDoubt`] where the database went away
    /// during the write: it may be kept.
    pub async fn submit(
        &self,
        mut request: CreateSubmissionRequest,
        options: SubmissionOptions,
    ) -> Result<Accepted, Error> {
        let fingerprint = fingerprint(&mut request, &options)?;
        let mut resolved = self.resolve(request, options)?;
        let mut owner = self.owner(&resolved.request);
        if let Some(key) = &resolved.options.idempotency_key
            && let Some((found, before)) = self.store.of_key(&owner, key).await?
        {
            return replay(found, &before, &fingerprint, key);
        }
        let mut drawn = self.store.draw().await?;
        for _ in 0..TRIES {
            let plan = self.plan(resolved, drawn)?;
            let unknown = misspelt(&plan);
            let Plan { options, origins, files, .. } = plan;
            let pod = format!("{}/{}", plan.namespace, plan.names.driver_pod);
            let new = NewSubmission {
                name: short(&plan.name),
                owner,
                spark_user: self.spark.user.clone(),
                spark_version: self.spark.version,
                options: options.kept(),
                fingerprint: fingerprint.clone(),
                drawn: plan.drawn,
                request: plan.request,
                namespace: plan.namespace,
                names: plan.names,
                manifest: plan.manifest,
            };
            let wanted = options.unique_name.unwrap_or(false).then(|| (new.name.clone(), new.namespace.clone()));
            match self.store.accept(new).await? {
                store::Accepted::New(submission) => {
                    let id = submission.id.clone();
                    tracing::info!(submission = %id, %pod, "accepted");
                    if !unknown.is_empty() {
                        tracing::info!(submission = %id, ?unknown, "no Spark knows these properties: are they misspelt?");
                    }
                    self.wake.notify_one();
                    self.events.changed();
                    return Ok(Accepted { submission: Found { id, document: Ok(submission) }, replayed: false });
                }
                store::Accepted::SameKey(found, before) => {
                    let key = options.idempotency_key.as_deref().unwrap_or_default();
                    return replay(found, &before, &fingerprint, key);
                }
                store::Accepted::SameName(by) => {
                    let (name, namespace) = wanted.unwrap_or_default();
                    return Err(Error::NameTaken { name, namespace, by });
                }
                store::Accepted::InDoubt(id, source) => return Err(Error::InDoubt { id, source }),
                // Names and labels are made of the number: they are made anew.
                store::Accepted::Taken(new) => {
                    drawn = self.store.draw_beyond(&new.drawn).await?;
                    owner = new.owner;
                    resolved = Resolved { request: new.request, files, options, origins };
                }
            }
        }
        let why = io::Error::other("each number that was drawn had been taken");
        Err(Error::Internal("drawing a number for a submission failed".to_owned(), why.into()))
    }

    /// For whom a driver runs.
    pub(super) fn owner(&self, request: &CreateSubmissionRequest) -> String {
        let own = request.proxy_user.as_ref().or_else(|| request.environment_variables.get("SPARK_USER"));
        short(own.unwrap_or(&self.spark.user))
    }
}

/// As much of a name as is kept to be found by: an index takes no more than some thousand bytes.
fn short(name: &str) -> String {
    const LONGEST: usize = 253;
    name[..name.floor_char_boundary(LONGEST)].replace('\0', "\u{fffd}")
}

fn replay(found: Found, before: &[u8], now: &[u8], key: &str) -> Result<Accepted, Error> {
    if before == now {
        tracing::info!(submission = %found.id, "accepted before, under the same idempotency key");
        return Ok(Accepted { submission: found, replayed: true });
    }
    Err(Error::KeyReused { key: key.to_owned(), by: found.id })
}

/// What tells two requests under one key apart: all that they ask for, however it was written down. Not the version of
/// the client, which may be upgraded between two tries, nor the time that spark-submit stamps on each of them.
fn fingerprint(request: &mut CreateSubmissionRequest, options: &SubmissionOptions) -> Result<Vec<u8>, Error> {
    let client = mem::take(&mut request.client_spark_version);
    let time = request.spark_properties.remove_entry("spark.app.submitTime");
    let json = serde_json::to_vec(request);
    request.client_spark_version = client;
    request.spark_properties.extend(time);
    let json = json.map_err(|error| Error::Internal("writing the request as JSON".into(), error.into()))?;
    let options = SubmissionOptions { idempotency_key: None, ..options.clone() };
    Ok(Sha256::new().chain_update(json).chain_update(format!("{options:?}")).finalize().to_vec())
}

fn misspelt(plan: &Plan) -> Vec<String> {
    let unknown = plan.request.spark_properties.keys().filter(|key| !keys::is_known(key));
    unknown.take(MISSPELT_MAX).cloned().collect()
}
