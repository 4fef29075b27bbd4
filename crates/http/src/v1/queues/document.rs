//! Queues as the API represents them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use sparkgate_service::{QueueOverview, QueueState, StoredQueueState, TenantInQueue, Waiting};
use sparkgate_submission::queues::{Amounts, Resource};

/// The queues that the caller's tenants may use.
#[derive(Serialize, ToSchema)]
pub(in crate::v1) struct QueueList {
    queues: Vec<Queue>,
}

/// A queue.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Queue {
    #[schema(example = "nightly")]
    name: String,
    /// `open` without another state.
    state: QueueStateWord,
    /// Since when it has another state than `open`, by whom and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<StateChange>,
    #[schema(example = 3)]
    weight: u32,
    /// Its part of the capacity by its weight. Others are lent what it doesn't use.
    #[schema(example = 0.75)]
    fair_share: f64,
    /// What its submissions may use together. Absent amounts are unlimited.
    caps: Resources,
    /// What its admitted submissions reserve.
    running: Resources,
    /// Number of submissions that wait, without held ones.
    waiting: u64,
    held: u64,
    /// The same by tenant, for the tenants that the caller may read.
    tenants: BTreeMap<String, TenantOfQueue>,
}

/// Amounts of resources. Absent ones are unlimited in caps, and else zero.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Resources {
    #[serde(skip_serializing_if = "Option::is_none")]
    submissions: Option<u64>,
    /// Drivers and executors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 12.5)]
    cores: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    /// Extended resources by name, such as `nvidia.com/gpu`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    extended: BTreeMap<String, u64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TenantInQueue)]
struct TenantOfQueue {
    running: Resources,
    waiting: u64,
    held: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = QueueStateChange)]
struct StateChange {
    at: DateTime<Utc>,
    /// The principal.
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The state of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = QueueState)]
pub(super) enum QueueStateWord {
    /// It accepts and admits.
    Open,
    /// It admits nothing.
    Paused,
    /// It accepts nothing; what waits is admitted.
    Draining,
}

/// Where a submission stands that waits in its queue, or who holds it. `waiting` has the reason in words.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct QueuePlace {
    /// Number of submissions of its tenant that are admitted before it. Absent if it is held, or if there are more than ten thousand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 12)]
    ahead: Option<u32>,
    /// When it is admitted, if the queue goes on as in the last day. Absent without enough history.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Estimate>,
    /// It isn't launched before it is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<HeldBy>,
}

/// An estimate from the history of the tenant in the queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QueueEstimate)]
struct Estimate {
    seconds: u64,
    /// The standard error of the seconds.
    error_seconds: u64,
    /// The number of admissions that it is computed from, and since when they happened.
    admissions: u32,
    since: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Hold)]
struct HeldBy {
    at: DateTime<Utc>,
    /// The principal.
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<Waiting> for QueuePlace {
    fn from(waiting: Waiting) -> Self {
        let whole = |seconds: f64| seconds.max(0.0).round() as u64;
        Self {
            ahead: waiting.ahead,
            estimate: waiting.estimate.map(|estimate| Estimate {
                seconds: whole(estimate.seconds),
                error_seconds: whole(estimate.error_seconds),
                admissions: estimate.admissions,
                since: estimate.since,
            }),
            held: waiting.held.map(|held| HeldBy { at: held.at, by: held.by, reason: held.reason }),
        }
    }
}

impl From<Amounts> for Resources {
    fn from(amounts: Amounts) -> Self {
        let extended = amounts.iter().filter_map(|(resource, amount)| match resource {
            Resource::Extended(name) => Some((name.clone(), *amount)),
            _ => None,
        });
        Self {
            submissions: amounts.get(&Resource::Submissions),
            pods: amounts.get(&Resource::Pods),
            cores: amounts.get(&Resource::Cores).map(|millicores| millicores as f64 / 1000.0),
            memory_bytes: amounts.get(&Resource::Memory),
            extended: extended.collect(),
        }
    }
}

impl From<TenantInQueue> for TenantOfQueue {
    fn from(tenant: TenantInQueue) -> Self {
        Self { running: tenant.running.into(), waiting: tenant.waiting, held: tenant.held }
    }
}

impl From<QueueOverview> for Queue {
    fn from(queue: QueueOverview) -> Self {
        let state = queue.state.as_ref().map_or(QueueStateWord::Open, |stored| match stored.state {
            QueueState::Paused => QueueStateWord::Paused,
            QueueState::Draining => QueueStateWord::Draining,
        });
        let changed = |StoredQueueState { changed_at: at, changed_by: by, reason, .. }| StateChange { at, by, reason };
        Self {
            state,
            changed: queue.state.map(changed),
            name: queue.name,
            weight: queue.weight,
            fair_share: queue.fair_share,
            caps: queue.caps.into(),
            running: queue.running.into(),
            waiting: queue.waiting,
            held: queue.held,
            tenants: queue.tenants.into_iter().map(|(name, tenant)| (name, tenant.into())).collect(),
        }
    }
}

impl From<Vec<QueueOverview>> for QueueList {
    fn from(queues: Vec<QueueOverview>) -> Self {
        Self { queues: queues.into_iter().map(Queue::from).collect() }
    }
}
