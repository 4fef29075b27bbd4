//! A model of the database: the row, its claim and the lease of the watch, with the guards of `crates/store`'s statements.
//!
//! A claim's number only has to differ from those before it. A claim is the current one or an old one ([`Claim`]), and each new number
//! makes all others old.

use sparkgate_submission::State;

use crate::{
    bounds::{ATTEMPTS, Seeded},
    machines::{Change, End},
    view::{RowView, Uid},
};

/// The number of a claim, compared with that of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Claim {
    Current,
    Old,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) attempt: u8,
    /// The attempt whose names and objects are stored.
    pub(crate) named: u8,
    pub(crate) uid: Uid,
    /// The replica whose session has claimed it. A claim of a session that has ended is free.
    pub(crate) claimed_by: Option<u8>,
    /// With [`Seeded::RetryApart`]: the end is recorded, and the next attempt isn't queued yet.
    pub(crate) to_retry: bool,
}

/// A write of a state, with what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) attempt: u8,
    /// The claim under which it is written, if any.
    pub(crate) claim: Option<Claim>,
    pub(crate) change: Change,
    pub(crate) uid: Uid,
}

/// What a write of a state did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    No,
    Yes,
    /// The attempt has ended, and the row waits for the launch of the next one, under a new number.
    Retried,
}

/// The statements of which one records an end (`store/advance.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) enum Part {
    /// It queues another attempt, if a retry is left.
    #[default]
    Retry,
    /// It records the state, unless another attempt follows.
    State,
    /// It queues another attempt, if the submission is restarted.
    Restart,
}

/// What the gateway and the submission permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) most: u8,
    pub(crate) restart: bool,
    pub(crate) seeded: Option<Seeded>,
}

impl Row {
    pub(crate) fn accepted() -> Self {
        Self { state: State::Queued, attempt: 1, named: 1, uid: 0, claimed_by: None, to_retry: false }
    }

    pub(crate) fn view(&self) -> RowView {
        RowView { state: self.state, attempt: self.attempt, named: self.named == self.attempt, uid: self.uid }
    }

    /// Returns whether it is work for a launch or a kill (`store/claim.rs`).
    pub(crate) fn is_due(&self) -> bool {
        matches!(self.state, State::Queued | State::Launching | State::Killing)
    }

    /// Returns whether a list of the pods should contain its pod (`store/live.rs`).
    pub(crate) fn has_pod(&self) -> bool {
        match self.state {
            State::Pending | State::Running => true,
            State::Launching | State::Killing => self.uid != 0,
            _ => false,
        }
    }

    /// `store/claim.rs`: the caller has checked that the row is due and free.
    pub(crate) fn claim(&mut self, replica: u8) {
        self.claimed_by = Some(replica);
        if self.state == State::Queued {
            self.state = State::Launching;
        }
    }

    /// `store/attempts.rs`: stores the names of a later attempt, once.
    pub(crate) fn keep_names(&mut self, attempt: u8, claim: Claim) -> bool {
        let kept = self.attempt == attempt && claim == Claim::Current && self.named < attempt;
        if kept {
            self.named = attempt;
        }
        kept
    }

    /// `store/launches.rs`: records the pod, and returns the state of the row.
    pub(crate) fn record_pod(&mut self, attempt: u8, claim: Claim, uid: Uid) -> Option<State> {
        let guarded = self.attempt == attempt && claim == Claim::Current && (self.uid == 0 || self.uid == uid);
        guarded.then(|| {
            self.uid = uid;
            self.state
        })
    }

    /// `store/advance.rs` and `store/retry.rs`: carries out one statement. Returns what it did; `None` if the next one is carried out.
    pub(crate) fn advance(&mut self, write: Move, part: Part, rules: Rules) -> Option<Moved> {
        let Move { change, uid, .. } = write;
        let Rules { most, restart, seeded } = rules;
        let is_guarded = self.is_guarded(write, seeded);
        let Change::Ended(end) = change else {
            return (part == Part::State).then(|| if is_guarded { self.set(write) } else { Moved::No });
        };
        let is_left = self.attempt < most && usize::from(self.attempt) < ATTEMPTS;
        let is_restarted = restart && is_left && self.state != State::Killing && end.state != State::Killed;
        match part {
            Part::Retry => {
                let may = self.state != State::Killing || seeded == Some(Seeded::RetriesAKill);
                (is_guarded && end.retried && may && is_left).then(|| self.follow_up(end, uid, seeded))
            }
            Part::State if is_restarted => None,
            Part::State if is_guarded => Some(self.set(write)),
            Part::State => None,
            Part::Restart if is_guarded && is_restarted => Some(self.follow_up(end, uid, seeded)),
            Part::Restart => Some(Moved::No),
        }
    }

    fn is_guarded(&self, write: Move, seeded: Option<Seeded>) -> bool {
        let Move { attempt, claim, change, uid } = write;
        (self.attempt == attempt || seeded == Some(Seeded::AnyAttemptMoves))
            && (self.state.may_become(change.state()) || seeded == Some(Seeded::AnyStateMoves))
            && claim != Some(Claim::Old)
            && (self.uid == 0 || uid == 0 || self.uid == uid || seeded == Some(Seeded::AnyAttemptMoves))
    }

    fn set(&mut self, write: Move) -> Moved {
        let Move { claim, change, uid, .. } = write;
        if uid != 0 {
            self.uid = uid;
        }
        if claim.is_some() && change == Change::Launched && uid != 0 {
            self.claimed_by = None;
        }
        self.state = change.state();
        Moved::Yes
    }

    /// Ends the attempt, and queues the next one.
    fn follow_up(&mut self, end: End, uid: Uid, seeded: Option<Seeded>) -> Moved {
        if uid != 0 {
            self.uid = uid;
        }
        if seeded == Some(Seeded::RetryApart) {
            (self.state, self.to_retry) = (end.state, true);
            return Moved::Yes;
        }
        self.retry();
        Moved::Retried
    }

    pub(crate) fn retry(&mut self) {
        self.attempt += 1;
        (self.state, self.uid, self.claimed_by, self.to_retry) = (State::Queued, 0, None, false);
    }

    /// `store/kill.rs`.
    pub(crate) fn kill(&mut self) {
        if matches!(self.state, State::Pending | State::Running) {
            self.claimed_by = None;
        }
        self.state = if self.state == State::Queued { State::Killed } else { State::Killing };
    }
}
