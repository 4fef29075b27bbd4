//! What is accepted.

use std::collections::BTreeMap;

use super::{in_queue::InQueue, spares::Drawn, tenant_bounds::TenantBounds};
use crate::{actor::Actor, sealed::Sealed};
use sparkgate_spark::{CreateSubmissionRequest, DriverNames, SparkVersion};
use sparkgate_submission::Wire;

/// The values that are fixed when a request is accepted.
#[derive(Debug, Clone)]
pub struct NewSubmission {
    pub drawn: Drawn,
    /// It is stored without secrets.
    pub request: CreateSubmissionRequest,
    /// The properties that the request itself didn't have: their keys by origin.
    pub origins: BTreeMap<String, Vec<String>>,
    pub spark_version: SparkVersion,
    /// `SPARK_USER` if the request names none.
    pub spark_user: String,
    pub namespace: String,
    pub names: DriverNames,
    /// The objects to create, as JSON.
    pub manifest: String,
    /// The same with their secrets. The others are without them then.
    pub sealed: Option<Sealed>,
    /// The name for searches.
    pub name: String,
    pub owner: String,
    pub tenant: String,
    /// The caller that submits it.
    pub principal: String,
    /// The caller for the audit; `None` writes no entry.
    pub actor: Option<Actor>,
    pub options: Options,
    /// The bounds of the tenant.
    pub bounds: TenantBounds,
    /// The queue that has to admit it, if there is one.
    pub queue: Option<InQueue>,
    /// The trace that it belongs to, if there is one.
    pub trace: Option<String>,
    /// A digest of the request, to tell whether another request with the same idempotency key is the same one.
    pub fingerprint: Vec<u8>,
}

/// Options of a submission for the gateway itself; times in seconds.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub idempotency_key: Option<String>,
    /// The client's own id, unique in the tenant.
    pub client_id: Option<String>,
    /// The API that it came with, if it isn't the gateway's own or Spark's.
    pub wire: Option<Wire>,
    /// No other live submission of its namespace with this option may have the same name.
    pub unique_name: bool,
    pub labels: BTreeMap<String, String>,
    pub start_timeout: Option<i32>,
    pub run_timeout: Option<i32>,
    pub kill_grace: Option<i32>,
    pub max_retries_infrastructure: i32,
    pub max_retries_application: i32,
    pub max_retries_capacity: i32,
    pub max_retries_quota: i32,
}
