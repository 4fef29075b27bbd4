//! What really happened, which no part of the gateway knows, and the invariants.

use sparkgate_submission::State;
use stateright::Property;

use crate::{
    bounds::ATTEMPTS,
    machines::{Change, End},
    model::Gateway,
    store::Move,
    view::{Body, Deletion, Uid},
    world::World,
};

/// What really happened to the driver of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Driver {
    /// The pods of ours in which a driver started.
    pub(crate) starts: u8,
    /// How it ended.
    pub(crate) ended: Option<Body>,
    /// Another user deleted its pod.
    pub(crate) was_deleted: bool,
    /// Another user removed its finalizer.
    pub(crate) was_stripped: bool,
    /// Another user's pod took its name.
    pub(crate) was_displaced: bool,
    /// The end that is recorded.
    pub(crate) recorded: Option<End>,
    /// A restore forgot its recorded end. Its finalizer may be removed by a request that was sent before.
    pub(crate) was_forgotten: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Truth {
    pub(crate) drivers: [Driver; ATTEMPTS],
    /// The attempt in which a kill was accepted, and whether its pod had existed by then.
    pub(crate) killed: Option<(u8, bool)>,
    /// The database was restored: it doesn't know of some drivers that run.
    pub(crate) was_restored: bool,
    /// An invariant that a step broke.
    pub(crate) broken: Option<Invariant>,
}

macro_rules! invariants {
    ($($name:ident $words:literal)*) => {
        /// What must hold. Each one stands for lines of `docs/internals/argument.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Invariant { $($name),* }

        impl Invariant {
            /// Returns all of them, as Stateright checks them.
            pub(crate) fn properties() -> Vec<Property<Gateway>> {
                vec![$(Property::always($words, |gateway: &Gateway, world| gateway.holds(Self::$name, world))),*]
            }
        }
    };
}

invariants! {
    OneDriverPerAttempt "at most one driver starts for an attempt"
    NoSecondPod "a launch that begins with a recorded pod creates no other"
    NoOverlap "drivers of two attempts never run at once"
    RecordedBeforeStart "a driver that runs is recorded"
    TrueEnd "a recorded end is what happened"
    EndIsFinal "no driver runs after its end is recorded"
    KillStartsNothing "after a kill no driver starts and none is queued, unless its pod existed before"
    TerminalIsFinal "terminal states are never left"
    OthersPodsUntouched "pods of others are never touched"
    CommitBeforeFinalizer "the finalizer holds a driver until its end is recorded"
    WritesUnderLease "a replica looks at its lease before it writes to the cluster"
    OneHolder "a row is claimed only if the lease of its holder has expired"
    OldClaimsWriteNothing "a write under an older claim changes nothing"
    Ends "without more faults every submission ends, also while one link stays cut"
}

impl Truth {
    pub(crate) fn driver(&self, attempt: u8) -> &Driver {
        &self.drivers[usize::from(attempt) - 1]
    }

    pub(crate) fn driver_mut(&mut self, attempt: u8) -> &mut Driver {
        &mut self.drivers[usize::from(attempt) - 1]
    }

    pub(crate) fn breaks(&mut self, invariant: Invariant) {
        self.broken.get_or_insert(invariant);
    }
}

impl World {
    /// Returns the first invariant that doesn't hold in this state. [`Invariant::Ends`] needs more than one state.
    pub(crate) fn broken(&self) -> Option<Invariant> {
        if self.truth.broken.is_some() {
            return self.truth.broken;
        }
        let running = |attempt: u8| self.cluster.at(attempt).pod.filter(|pod| pod.ours && pod.body == Body::Running);
        let attempts = || 1..=ATTEMPTS as u8;
        if attempts().any(|attempt| self.truth.driver(attempt).starts > 1) {
            return Some(Invariant::OneDriverPerAttempt);
        }
        if attempts().filter_map(running).count() > 1 {
            return Some(Invariant::NoOverlap);
        }
        if let Some(row) = &self.row
            && !self.truth.was_restored
            && running(row.attempt).is_some_and(|pod| row.uid != pod.uid)
        {
            return Some(Invariant::RecordedBeforeStart);
        }
        let runs_on = |attempt: &u8| self.truth.driver(*attempt).recorded.is_some() && running(*attempt).is_some();
        if attempts().any(|attempt| runs_on(&attempt)) {
            return Some(Invariant::EndIsFinal);
        }
        let starts_nothing = |attempt: u8| {
            self.truth.killed.is_some_and(|(killed, had_pod)| attempt > killed || (attempt == killed && !had_pod))
        };
        if attempts().any(|attempt| starts_nothing(attempt) && self.truth.driver(attempt).starts > 0) {
            return Some(Invariant::KillStartsNothing);
        }
        None
    }

    /// Records the start of a driver.
    pub(crate) fn driver_starts(&mut self, attempt: u8) {
        let driver = self.truth.driver_mut(attempt);
        driver.starts = (driver.starts + 1).min(2);
        driver.ended = None;
    }

    /// Checks an end that is about to be recorded, under the names of the attempt of the row.
    pub(crate) fn check_end(&mut self, attempt: u8, end: End, is_killed: bool) {
        let driver = *self.truth.driver(attempt);
        let is_there = self.cluster.at(attempt).pod.is_some_and(|pod| pod.ours && pod.deletion != Deletion::Forced);
        let happened = driver.ended;
        let code = |code: Option<i32>| {
            code.is_none() || happened == code.and_then(|code| u8::try_from(code).ok()).map(Body::Exited)
        };
        let fits = match end.state {
            State::Finished => happened == Some(Body::Exited(0)),
            State::Failed => matches!(happened, Some(Body::Exited(1..) | Body::Evicted)),
            // A driver whose pod vanished with its end may have succeeded.
            State::Killed => {
                (is_killed || driver.was_deleted) && (happened != Some(Body::Exited(0)) || driver.was_stripped)
            }
            State::Error => driver.was_displaced && driver.starts == 0,
            State::Lost => driver.was_stripped && !is_there,
            _ => false,
        };
        if !fits || !code(end.code) {
            self.truth.breaks(Invariant::TrueEnd);
        }
    }

    /// Records a write of a state that took effect on the row, which was in the state `was`.
    pub(crate) fn wrote(&mut self, write: Move, was: State, attempt: u8) {
        if was.is_terminal() {
            self.truth.breaks(Invariant::TerminalIsFinal);
        }
        if let Change::Ended(end) = write.change {
            self.check_end(attempt, end, was == State::Killing);
            self.truth.driver_mut(attempt).recorded = Some(end);
        }
    }

    /// Checks that our finalizer isn't removed from a recorded driver whose end isn't recorded.
    pub(crate) fn check_finalizer(&mut self, name: u8, uid: Uid) {
        let held = self.cluster.pod(name, uid).is_some_and(|pod| pod.finalizer);
        let is_live = self.row.is_some_and(|row| row.attempt == name && row.uid == uid && !row.state.is_terminal());
        if held && is_live && !self.truth.driver(name).was_forgotten {
            self.truth.breaks(Invariant::CommitBeforeFinalizer);
        }
    }

    /// Checks that a write to a pod doesn't concern that of another user.
    pub(crate) fn check_owner(&mut self, name: u8, uid: Uid) {
        if self.cluster.pod(name, uid).is_some_and(|pod| !pod.ours) {
            self.truth.breaks(Invariant::OthersPodsUntouched);
        }
    }
}
