//! What the model does at most, and the errors that can be seeded into it.

use std::fmt;

use clap::ValueEnum;

/// The attempts of the submission: the second one is a retry.
pub(crate) const ATTEMPTS: usize = 2;
pub(crate) const REPLICAS: usize = 2;
/// The most objects that the pod owns. The last one is the `ConfigMap`.
pub(crate) const BESIDE: usize = 2;

/// The bound within which all states are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The faults of a history, of any kinds, in any order.
    pub(crate) faults: u8,
    /// The kills that a client requests.
    pub(crate) kills: u8,
    /// The most attempts, up to [`ATTEMPTS`].
    pub(crate) attempts: u8,
    /// Objects that are created before the pod: none or one.
    pub(crate) before: u8,
    /// Objects that the pod owns: one or two.
    pub(crate) beside: u8,
    /// Whether other users act: a forged pod, deletions, removed finalizers.
    pub(crate) outsiders: bool,
    /// Whether the database may be restored from a backup.
    pub(crate) restore: bool,
    /// Whether the quota of the namespace has room for one pod that hasn't ended.
    pub(crate) quota: bool,
    /// Whether the submission is restarted after each end. Then the statements that may record an end are steps of their own.
    pub(crate) restart: bool,
}

/// An error of the gateway that the checker has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Seeded {
    /// Writes under a claim don't compare its number.
    NoEpoch,
    /// A replica doesn't look at its lease before it writes to the cluster.
    NoLeaseCheck,
    /// A row is claimed although the lease of its holder hasn't expired.
    ClaimsHeldRows,
    /// A renewal extends every lease of the session, also those that were resigned.
    RenewsWhatItResigned,
    /// A replica that can't reach the API server keeps the lease of the watch.
    KeepsTheWatch,
    /// A replica that can't reach the API server keeps claims whose reply was lost.
    KeepsUnknownClaims,
    /// A call without an answer counts as refused.
    LostReplyIsRefusal,
    /// A look-up without an answer proves that the pod doesn't exist.
    LostReplyIsAbsence,
    /// The `ConfigMap` is created with the pod, before the uid is recorded.
    ConfigMapFirst,
    /// Labels prove whose pod it is.
    BelievesLabels,
    /// The next attempt is queued by a statement after that which records the end.
    RetryApart,
    /// The finalizer is removed before the end is recorded.
    FinalizerFirst,
    /// The record of the pod doesn't return that a kill was accepted.
    KillUnseen,
    /// A launch doesn't look at the recorded pod.
    ForgetsThePod,
    /// A write of a state doesn't name the states that it may leave.
    AnyStateMoves,
    /// A write of a state names neither its attempt nor its pod.
    AnyAttemptMoves,
    /// A submission that is being killed is retried.
    RetriesAKill,
    /// A write of a state that changed nothing counts as done.
    RefusalIsDone,
}

impl Bounds {
    /// Returns the least bounds: no fault, one attempt.
    const fn least() -> Self {
        Self {
            faults: 0,
            kills: 0,
            attempts: 1,
            before: 0,
            beside: 1,
            outsiders: false,
            restore: false,
            quota: false,
            restart: false,
        }
    }

    /// Returns the bounds that the tests check, in seconds.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests"))]
    pub(crate) fn of_tests() -> Vec<Self> {
        vec![
            Self { faults: 1, ..Self::least() },
            Self { kills: 1, attempts: 2, ..Self::least() },
            Self { faults: 1, quota: true, ..Self::least() },
            Self { kills: 1, attempts: 2, restart: true, ..Self::least() },
        ]
    }

    /// Returns the bounds that `make prove` checks, with this number of faults or their own.
    #[cfg_attr(test, expect(dead_code, reason = "for `make prove`"))]
    pub(crate) fn of_make_prove(faults: Option<u8>) -> Vec<Self> {
        let some = |own: u8| Self { faults: faults.unwrap_or(own), ..Self::least() };
        vec![
            // A launch, and the same with a kill.
            some(2),
            Self { kills: 1, ..some(1) },
            // A retry, and the same with a kill.
            Self { attempts: 2, ..some(1) },
            Self { kills: 1, attempts: 2, ..some(0) },
            // All kinds of objects, and other users.
            Self { before: 1, beside: 2, ..some(1) },
            Self { outsiders: true, ..some(1) },
            Self { restore: true, ..some(1) },
            // Refusals, and restarts.
            Self { before: 1, beside: 2, quota: true, ..some(1) },
            Self { kills: 1, attempts: 2, restart: true, ..some(0) },
        ]
    }
}

impl Seeded {
    /// Returns the bounds within which the error is found.
    pub(crate) fn bounds(self) -> Bounds {
        let faults = |faults: u8| Bounds { faults, ..Bounds::least() };
        match self {
            Self::ClaimsHeldRows | Self::KeepsTheWatch | Self::ConfigMapFirst => faults(0),
            Self::KillUnseen => Bounds { kills: 1, ..faults(0) },
            Self::RetryApart => Bounds { attempts: 2, ..faults(0) },
            Self::RetriesAKill => Bounds { kills: 1, attempts: 2, ..faults(0) },
            Self::FinalizerFirst | Self::NoLeaseCheck | Self::KeepsUnknownClaims => faults(1),
            Self::LostReplyIsRefusal | Self::LostReplyIsAbsence | Self::ForgetsThePod | Self::AnyStateMoves => {
                faults(1)
            }
            Self::RefusalIsDone => Bounds { kills: 1, ..faults(2) },
            Self::BelievesLabels => Bounds { outsiders: true, ..faults(1) },
            Self::NoEpoch | Self::RenewsWhatItResigned => faults(2),
            Self::AnyAttemptMoves => Bounds { attempts: 2, ..faults(2) },
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { faults, kills, attempts, before, beside, outsiders, restore, quota, restart } = self;
        write!(f, "{faults} faults, {kills} kills, {attempts} attempts, {before}+{beside} objects")?;
        if *outsiders {
            f.write_str(", outsiders")?;
        }
        for (is_set, name) in [(restore, "restore"), (quota, "quota"), (restart, "restart")] {
            if *is_set {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}
