//! Tenants: who shares namespaces, limits and a policy.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{pattern::Patterns, principal::Principal, role::Role};

/// A group of users with namespaces of their own. A namespace belongs to one tenant at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    pub name: String,
    pub namespaces: Namespaces,
    /// The service accounts that drivers may use; any, if it is empty.
    pub service_accounts: Vec<String>,
    /// The Spark releases and lines that requests may use; any, if it is empty.
    pub spark_versions: Vec<String>,
    /// The Spark release or line of requests that name none; `None` is the gateway's own.
    pub default_spark_version: Option<String>,
    /// The named defaults of the submitter directory that requests may select.
    pub named_defaults: Patterns,
    /// The files of the submitter directory that properties may name.
    pub files: Patterns,
    /// Properties that replace those of a request.
    pub properties: BTreeMap<String, String>,
    /// Properties that a request may replace. They replace those of the gateway.
    pub defaults: BTreeMap<String, String>,
    pub caps: Caps,
    pub limits: TenantLimits,
    /// What usage costs; `None` if the prices of the gateway apply.
    pub prices: Option<TenantPrices>,
    /// The queue of submissions that name none; `None` if the tenant may use no queue: its submissions are launched as they come.
    pub default_queue: Option<String>,
    /// Whether its members may share sessions of Spark Connect.
    pub has_shared_sessions: bool,
    /// The section `policy`, as written.
    pub policy: Option<serde_json::Value>,
    pub(crate) members: Vec<Member>,
}

impl Tenant {
    /// Returns the namespace of requests that name none; `None` is the gateway's own default.
    pub fn default_namespace(&self) -> Option<&str> {
        match &self.namespaces {
            Namespaces::All => None,
            Namespaces::Listed(names) => names.first().map(String::as_str),
        }
    }
}

/// The namespaces of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All that the gateway serves: there is no access file, or only this tenant.
    All,
    /// These; the first is the default.
    Listed(Vec<String>),
}

impl Namespaces {
    /// Returns whether the namespace is one of them.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(names) => names.iter().any(|name| name == namespace),
        }
    }
}

/// Upper bounds of what a request may ask for. Those of the gateway also apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    pub start_timeout: Option<Duration>,
    pub run_timeout: Option<Duration>,
    pub kill_grace: Option<Duration>,
    pub retries: Option<u32>,
}

/// Prices of a tenant, as decimal numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantPrices {
    /// Of a core for an hour.
    pub core_hour: String,
    /// Of a GiB of memory for an hour.
    pub gib_hour: String,
}

/// Returns whether the text is a price: a decimal number that isn't negative, with at most nine digits before and after the point.
pub fn is_price(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number(whole) && is_number(fraction)
}

/// How much of the gateway a tenant may use at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantLimits {
    /// Submissions that wait for their launch.
    pub queued: Option<u64>,
    /// Clients that follow events or wait.
    pub subscribers: Option<u32>,
    /// Clients that read or follow logs.
    pub log_readers: Option<u32>,
    /// Bytes of uploaded files.
    pub file_bytes: Option<u64>,
    /// Bytes of the records of submissions.
    pub record_bytes: Option<u64>,
}

/// A role and the subjects and groups that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) role: Role,
    pub(crate) subjects: BTreeSet<String>,
    pub(crate) groups: BTreeSet<String>,
    /// Whether they decide about the driver pods of their submissions once those exist.
    pub(crate) owns_pods: bool,
}

impl Member {
    pub(crate) fn includes(&self, principal: &Principal) -> bool {
        self.subjects.contains(principal.subject())
            || principal.groups().iter().any(|group| self.groups.contains(group))
    }
}

/// Returns the strongest role that the members give a principal.
pub(crate) fn strongest(members: &[Member], principal: &Principal) -> Option<Role> {
    members.iter().filter(|member| member.includes(principal)).map(|member| member.role).max()
}
