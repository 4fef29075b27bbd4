//! service: an in-memory stand-in, to be replaced.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    spark::{CreateSubmissionRequest, Refusal, SparkVersion},
    submission::{DriverState, SubmissionId},
};

/// Stand-in.
#[derive(Clone)]
pub struct Gateway {
    version: SparkVersion,
    kept: Arc<Mutex<BTreeMap<SubmissionId, DriverState>>>,
}

/// Stand-in.
pub struct Worker {
    pub id: String,
    pub host_port: String,
}

/// Stand-in.
pub struct Status {
    pub id: SubmissionId,
    pub driver_state: DriverState,
    pub message: Option<String>,
    pub worker: Option<Worker>,
}

/// Stand-in.
pub enum Readiness {
    Ready,
    NotReady(String),
}

/// Stand-in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("refused")]
    Refused(#[source] Refusal),
    #[error("unavailable")]
    Unavailable {},
    #[error("internal")]
    Internal {},
}

impl Gateway {
    /// Stand-in.
    pub fn stand_in(version: SparkVersion) -> Self {
        Self { version, kept: Arc::default() }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, BTreeMap<SubmissionId, DriverState>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stand-in.
    pub fn spark_version(&self) -> SparkVersion {
        self.version
    }

    /// Stand-in.
    pub async fn create(&self, request: CreateSubmissionRequest) -> Result<SubmissionId, Error> {
        match request.main_class.as_str() {
            "Refused" => return Err(Error::Refused(Refusal::property("spark.master", "not k8s://"))),
            "Unavailable" => return Err(Error::Unavailable {}),
            "Internal" => return Err(Error::Internal {}),
            "Panic" => unreachable!("asked to panic"),
            _ => {}
        }
        let mut kept = self.kept();
        let id = format!("driver-20260102030405-{:04}", kept.len());
        let id: SubmissionId = id.parse().map_err(|_| Error::Internal {})?;
        kept.insert(id.clone(), DriverState::Submitted);
        Ok(id)
    }

    /// Stand-in.
    pub async fn status(&self, id: &SubmissionId) -> Result<Option<Status>, Error> {
        let state = self.kept().get(id).copied();
        Ok(state.map(|driver_state| Status { id: id.clone(), driver_state, message: None, worker: None }))
    }

    /// Stand-in.
    pub async fn kill(&self, id: &SubmissionId) -> Result<bool, Error> {
        let old = self.kept().get_mut(id).map(|state| std::mem::replace(state, DriverState::Killed));
        Ok(old == Some(DriverState::Submitted))
    }

    /// Stand-in.
    pub async fn kill_all(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Stand-in.
    pub async fn clear(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Stand-in.
    pub async fn readiness(&self) -> Readiness {
        Readiness::Ready
    }
}
