//! The steps of the model.

use crate::{
    bounds::{ATTEMPTS, REPLICAS},
    world::At,
};

/// Which work of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// That under a claim.
    Task,
    /// The processing of an observation.
    Following,
}

/// How a request fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Answered,
    /// It is carried out, and its reply is lost.
    ReplyLost,
    /// Its sender waits no longer, and it is carried out later.
    Late,
    /// The process is stopped before it is sent, and its lease runs out meanwhile.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Database,
    Cluster,
}

/// A step. Those of the cluster concern the names of an attempt, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Accept,
    Kill,
    Claim(At),
    /// A claim whose reply is lost.
    ClaimUnheard(At),
    GiveBackUnknown(At),
    Step(At, Slot, Way),
    /// Acquires the lease of the watch.
    Watch(At),
    /// Resigns it, because the API server can't be reached.
    Resign(At),
    /// The same, and the database doesn't hear of it.
    ResignUnheard(At),
    WatchExpires,
    /// The watch shows the pod.
    See(At, u8),
    /// The watch shows that the pod is gone.
    SeeGone(At, u8),
    /// The pod of the row isn't in a list.
    Miss(At),
    LeaseRunsOut(At),
    NewSession(At),
    Crash(At),
    Cut(At, Link),
    Heal(At, Link),
    /// A late request is carried out.
    Arrive,
    /// With an error: the second statement of a retry.
    QueueNext,
    Start(u8),
    Exit(u8, u8),
    Collect(u8),
    Evict(u8),
    DeleteOutside(u8),
    StripFinalizer(u8),
    /// Another user's pod with our labels, that has succeeded.
    Forge(u8),
    ForgedGoes(u8),
    /// The database is restored from a backup that was made when the submission was accepted.
    Restore,
}

impl Action {
    /// Returns all steps, also those that aren't possible in a state.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Self::Accept, Self::Kill, Self::WatchExpires, Self::Arrive, Self::QueueNext, Self::Restore];
        for at in 0..REPLICAS as At {
            all.extend([Self::Claim(at), Self::ClaimUnheard(at), Self::GiveBackUnknown(at)]);
            for slot in [Slot::Task, Slot::Following] {
                let ways = [Way::Answered, Way::ReplyLost, Way::Late, Way::Stopped];
                all.extend(ways.map(|way| Self::Step(at, slot, way)));
            }
            all.extend([Self::Watch(at), Self::Resign(at), Self::ResignUnheard(at), Self::Miss(at)]);
            all.extend([Self::LeaseRunsOut(at), Self::NewSession(at), Self::Crash(at)]);
            for link in [Link::Database, Link::Cluster] {
                all.extend([Self::Cut(at, link), Self::Heal(at, link)]);
            }
            for name in 1..=ATTEMPTS as u8 {
                all.extend([Self::See(at, name), Self::SeeGone(at, name)]);
            }
        }
        for name in 1..=ATTEMPTS as u8 {
            all.extend([Self::Start(name), Self::Exit(name, 0), Self::Exit(name, 1), Self::Exit(name, 143)]);
            all.extend([Self::Collect(name), Self::Evict(name), Self::DeleteOutside(name)]);
            all.extend([Self::StripFinalizer(name), Self::Forge(name), Self::ForgedGoes(name)]);
        }
        all
    }

    /// Returns whether the step is a fault, of which a history has a limited number.
    pub(crate) fn is_fault(self) -> bool {
        match self {
            Self::Step(_, _, way) => way != Way::Answered,
            Self::ClaimUnheard(_)
            | Self::ResignUnheard(_)
            | Self::LeaseRunsOut(_)
            | Self::Crash(_)
            | Self::Cut(..)
            | Self::Evict(_)
            | Self::DeleteOutside(_)
            | Self::StripFinalizer(_)
            | Self::Forge(_)
            | Self::Restore => true,
            _ => false,
        }
    }

    /// Returns the same step with the replicas swapped.
    pub(crate) fn swapped(self) -> Self {
        let other = |at: At| 1 - at;
        match self {
            Self::Claim(at) => Self::Claim(other(at)),
            Self::ClaimUnheard(at) => Self::ClaimUnheard(other(at)),
            Self::GiveBackUnknown(at) => Self::GiveBackUnknown(other(at)),
            Self::Step(at, slot, way) => Self::Step(other(at), slot, way),
            Self::Watch(at) => Self::Watch(other(at)),
            Self::Resign(at) => Self::Resign(other(at)),
            Self::ResignUnheard(at) => Self::ResignUnheard(other(at)),
            Self::See(at, name) => Self::See(other(at), name),
            Self::SeeGone(at, name) => Self::SeeGone(other(at), name),
            Self::Miss(at) => Self::Miss(other(at)),
            Self::LeaseRunsOut(at) => Self::LeaseRunsOut(other(at)),
            Self::NewSession(at) => Self::NewSession(other(at)),
            Self::Crash(at) => Self::Crash(other(at)),
            Self::Cut(at, link) => Self::Cut(other(at), link),
            Self::Heal(at, link) => Self::Heal(other(at), link),
            same => same,
        }
    }
}
