//! Why a `Workload` isn't admitted. Later releases of Kueue give a word for it; 0.14 gives only a sentence.

use sparkgate_spark::Quantity;

use super::parts::{Condition, PodSet, Spec, Status};

/// Why a `Workload` isn't admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingReason {
    /// Kueue hasn't judged it.
    Unseen,
    /// Others use the quota.
    WaitingForQuota,
    /// It asks for more than the queue can ever have, what it may borrow included.
    ExceedsMaxQuota,
    /// No flavor of nodes has the labels that the pods select, or is without taints that they don't tolerate.
    NoMatchingFlavor,
    /// Others are being preempted for it.
    WaitingForPreemptedWorkloads,
    /// The queue doesn't exist, or doesn't offer a resource.
    Misconfigured,
    /// The queue is stopped.
    Suspended,
    /// Kueue waits until the pods of an earlier one are ready.
    WaitingForPodsReady,
    /// Quota is reserved, and admission checks are open.
    AdmissionChecks,
    /// One of a later release.
    Other,
}

impl PendingReason {
    /// Returns Kueue's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unseen => "Unseen",
            Self::WaitingForQuota => "WaitingForQuota",
            Self::ExceedsMaxQuota => "ExceedsMaxQuota",
            Self::NoMatchingFlavor => "NoMatchingFlavor",
            Self::WaitingForPreemptedWorkloads => "WaitingForPreemptedWorkloads",
            Self::Misconfigured => "Misconfigured",
            Self::Suspended => "Suspended",
            Self::WaitingForPodsReady => "WaitingForPodsReady",
            Self::AdmissionChecks => "AdmissionChecks",
            Self::Other => "Pending",
        }
    }
}

/// Returns the reason of the condition `QuotaReserved=False`.
pub(super) fn reason(condition: &Condition, spec: &Spec, status: &Status) -> PendingReason {
    match condition.reason.as_str() {
        "WaitingForQuota" => PendingReason::WaitingForQuota,
        "ExceedsMaxQuota" => PendingReason::ExceedsMaxQuota,
        "NoMatchingFlavor" => PendingReason::NoMatchingFlavor,
        "WaitingForPreemptedWorkloads" => PendingReason::WaitingForPreemptedWorkloads,
        "Misconfigured" => PendingReason::Misconfigured,
        "Suspended" => PendingReason::Suspended,
        "WaitingForPodsReady" => PendingReason::WaitingForPodsReady,
        "Inadmissible" => reason_from_queue(&condition.message),
        _ => reason_from_sentence(&condition.message, spec, status),
    }
}

/// Reads a sentence about a queue (`WorkloadReconciler.Reconcile`).
fn reason_from_queue(message: &str) -> PendingReason {
    match message {
        text if text.ends_with("is stopped") || text.ends_with("is inactive") => PendingReason::Suspended,
        _ => PendingReason::Misconfigured,
    }
}

/// Reads a sentence of the scheduler (`Assignment.Message`, `Scheduler.nominate`): for each set of pods that doesn't fit, the reasons of
/// all flavors.
fn reason_from_sentence(message: &str, spec: &Spec, status: &Status) -> PendingReason {
    if message.contains("Pending the preemption of") {
        return PendingReason::WaitingForPreemptedWorkloads;
    }
    if message.contains("waiting for all admitted workloads to be in PodsReady condition") {
        return PendingReason::WaitingForPodsReady;
    }
    if message.ends_with("is inactive") {
        return PendingReason::Suspended;
    }
    if message.ends_with("not found") || message.contains("doesn't match ClusterQueue selector") {
        return PendingReason::Misconfigured;
    }
    let mut sets = message.split("; ").filter_map(|part| {
        let (name, reasons) = part.strip_prefix("couldn't assign flavors to pod set ")?.split_once(": ")?;
        Some(reason_from_pod_set(name, reasons, spec, status))
    });
    let Some(first) = sets.next() else { return PendingReason::Other };
    // A set that never fits decides.
    sets.fold(first, |one, other| if rank(other) > rank(one) { other } else { one })
}

/// Returns how final a reason is.
fn rank(reason: PendingReason) -> u8 {
    match reason {
        PendingReason::ExceedsMaxQuota => 3,
        PendingReason::Misconfigured => 2,
        PendingReason::NoMatchingFlavor => 1,
        _ => 0,
    }
}

/// Each flavor that was tried has a reason. The set fits never only if it fits none of them.
fn reason_from_pod_set(name: &str, reasons: &str, spec: &Spec, status: &Status) -> PendingReason {
    let set = spec.pod_sets.iter().find(|set| set.name == name);
    let mut exceeds = false;
    for reason in reasons.split(", insufficient ").flat_map(|part| part.split(", flavor ")) {
        if reason.contains("unavailable in ClusterQueue") {
            return PendingReason::Misconfigured;
        }
        if reason.contains("unused quota") {
            return PendingReason::WaitingForQuota;
        }
        if let Some(excess) = Excess::read(reason) {
            if !excess.is_final(set, status) {
                return PendingReason::WaitingForQuota;
            }
            exceeds = true;
        }
    }
    if exceeds {
        return PendingReason::ExceedsMaxQuota;
    }
    match reasons.contains("node affinity") || reasons.contains("untolerated taint") {
        true => PendingReason::NoMatchingFlavor,
        false => PendingReason::Other,
    }
}

/// `… quota for cpu in flavor default, request > maximum capacity (3 > 2)`.
struct Excess<'a> {
    resource: &'a str,
    request: Quantity,
    most: Quantity,
}

impl<'a> Excess<'a> {
    fn read(reason: &'a str) -> Option<Self> {
        let (about, amounts) = reason.split_once(", request > maximum capacity (")?;
        let (_, resource) = about.split_once("quota for ")?;
        let (resource, _) = resource.split_once(" in flavor ")?;
        let (request, most) = amounts.split_once(')')?.0.split_once(" > ")?;
        Some(Self { resource, request: Quantity::parse(request)?, most: Quantity::parse(most)? })
    }

    /// Returns whether the set exceeds the capacity with its minimum, too. The request that Kueue names is that of the whole set.
    fn is_final(&self, set: Option<&PodSet>, status: &Status) -> bool {
        let Some((set, least)) = set.and_then(|set| Some((set, set.min_count.filter(|least| *least < set.count)?)))
        else {
            return true;
        };
        let computed = status.resource_requests.iter().find(|computed| computed.name == set.name);
        let all = computed.and_then(|computed| Quantity::parse(computed.resources.get(self.resource)?));
        // Without the amounts of the set, nothing is known of its minimum.
        let Some(all) = all else { return false };
        let optional = all.millis() / i64::from(set.count) * i64::from(set.count - least);
        self.request.millis().saturating_sub(optional) > self.most.millis()
    }
}
