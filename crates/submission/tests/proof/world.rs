//! A state of the model: the database, the cluster, the replicas, a request that is under way, and what really happened.

use crate::{
    bounds::REPLICAS,
    cluster::Cluster,
    machines::{Ask, Id},
    store::{Claim, Part, Row},
    truth::Truth,
};

/// A replica, by its place.
pub(crate) type At = u8;

/// What the database and a replica's own clock say of its lease. The replica stops trusting it before the database lets another
/// one have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lease {
    Held,
    /// It may have expired. The replica notices before its next write to the cluster.
    Over,
}

/// Work under a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Task {
    pub(crate) attempt: u8,
    /// The attempt under whose names it works.
    pub(crate) name: u8,
    pub(crate) claim: Claim,
    /// The pod of the attempt was recorded when the work began.
    pub(crate) is_recorded: bool,
    pub(crate) doing: Doing,
    /// The process was stopped after it had looked at its lease and before its request was carried out.
    pub(crate) is_stopped: bool,
    /// The statement with which it goes on to record an end.
    pub(crate) part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Doing {
    /// The names of the attempt have to be stored first, then this machine begins.
    Naming(Id),
    Machine(Id),
    GivingBack,
}

/// The processing of one observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Following {
    pub(crate) attempt: u8,
    pub(crate) machine: Id,
    pub(crate) is_stopped: bool,
    pub(crate) part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Replica {
    pub(crate) lease: Lease,
    /// It believes that it holds the lease of the watch.
    pub(crate) watches: bool,
    pub(crate) task: Option<Task>,
    pub(crate) following: Option<Following>,
    /// Its links, unless they are cut.
    pub(crate) reaches_database: bool,
    pub(crate) reaches_cluster: bool,
}

impl Replica {
    pub(crate) fn start() -> Self {
        Self {
            lease: Lease::Held,
            watches: false,
            task: None,
            following: None,
            reaches_database: true,
            reaches_cluster: true,
        }
    }

    /// Ends the session, and begins another one.
    pub(crate) fn restart(&mut self) {
        let Self { reaches_database, reaches_cluster, .. } = *self;
        *self = Self { reaches_database, reaches_cluster, ..Self::start() };
    }
}

/// A request whose sender no longer waits, and which is carried out at any later time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Late {
    pub(crate) attempt: u8,
    pub(crate) name: u8,
    pub(crate) claim: Option<Claim>,
    pub(crate) ask: Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) row: Option<Row>,
    /// The holder of the lease of the watch.
    pub(crate) watch: Option<At>,
    pub(crate) cluster: Cluster,
    pub(crate) replicas: [Replica; REPLICAS],
    pub(crate) late: Option<Late>,
    /// The faults and kills that may still happen.
    pub(crate) faults: u8,
    pub(crate) kills: u8,
    pub(crate) truth: Truth,
}

impl World {
    pub(crate) fn start(faults: u8, kills: u8) -> Self {
        Self {
            row: None,
            watch: None,
            cluster: Cluster::default(),
            replicas: [Replica::start(); REPLICAS],
            late: None,
            faults,
            kills,
            truth: Truth::default(),
        }
    }

    pub(crate) fn replica(&self, at: At) -> &Replica {
        &self.replicas[usize::from(at)]
    }

    pub(crate) fn replica_mut(&mut self, at: At) -> &mut Replica {
        &mut self.replicas[usize::from(at)]
    }

    /// Gives the row a new number: every other claim of it is old.
    pub(crate) fn new_number(&mut self) {
        for task in self.replicas.iter_mut().filter_map(|replica| replica.task.as_mut()) {
            task.claim = Claim::Old;
        }
        if let Some(claim) = self.late.as_mut().and_then(|late| late.claim.as_mut()) {
            *claim = Claim::Old;
        }
    }

    /// Ends the session of a replica. Its leases expire, which frees its claim and the watch.
    pub(crate) fn end_session(&mut self, at: At) {
        self.replica_mut(at).restart();
        if let Some(row) = self.row.as_mut().filter(|row| row.claimed_by == Some(at)) {
            row.claimed_by = None;
        }
        self.watch = self.watch.filter(|holder| *holder != at);
    }

    /// Swaps the replicas.
    pub(crate) fn swapped(&self) -> Self {
        let other = |at: At| 1 - at;
        let mut world = *self;
        world.replicas.swap(0, 1);
        world.watch = self.watch.map(other);
        if let Some(row) = world.row.as_mut() {
            row.claimed_by = row.claimed_by.map(other);
        }
        world
    }

    /// Returns the state, or the one that differs only in the names of the replicas: the same for both, so only one of them is
    /// visited. Says whether they were swapped.
    pub(crate) fn canonical(self) -> (Self, bool) {
        let key = |world: &Self| (world.replicas, world.watch, world.row.map(|row| row.claimed_by));
        let swapped = self.swapped();
        if key(&swapped) < key(&self) { (swapped, true) } else { (self, false) }
    }
}
