//! The real engine. A machine is a value without I/O, so each one is stepped once for each result, and its successor is
//! remembered: a state of the model holds the number of a machine.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use sparkgate_submission::{
    KillCause, State, StateChange,
    engine::{Effect, EffectResult, Follow, Found, Job, Kill, Launch, Machine, Obstacle, Settled},
};

use crate::view::{RowView, Uid, View, uid_number, uid_text};

/// The number of a machine.
pub(crate) type Id = u16;

/// The start of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    Launch { uid: Uid, before: u8, beside: u8 },
    Kill { uid: Uid, before: u8, beside: u8 },
    Seen(View),
    Missed(RowView),
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct End {
    pub(crate) state: State,
    pub(crate) code: Option<i32>,
    /// Another attempt may follow, if any is left.
    pub(crate) retried: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    Launched,
    Running,
    Ended(End),
}

impl Change {
    pub(crate) fn state(self) -> State {
        match self {
            Self::Launched => State::Pending,
            Self::Running => State::Running,
            Self::Ended(end) => end.state,
        }
    }
}

/// An effect of the engine, without its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    Read,
    LookUp,
    CreateBefore,
    CreatePod,
    RecordPod(Uid),
    HandOver(Uid),
    CreateBeside(u8, Uid),
    DeleteBefore,
    Delete(Uid),
    RemoveFinalizer(Uid),
    RestoreLabels(Uid),
    Advance(Change, Uid),
    NoteWaiting,
    /// Nothing is left to do; whether the last write returned the claim.
    Settle {
        given_back: bool,
    },
}

/// The result of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Done,
    Created(View),
    Taken,
    Found(Option<View>),
    Row(Option<RowView>),
    Recorded(Option<State>),
    Moved(bool),
    NotFound,
    AlreadyExists,
    NoRoom,
    Unknown,
}

impl Reply {
    fn result(self) -> EffectResult {
        let refused = |reason: &str| EffectResult::Refused { reason: reason.to_owned(), message: String::new() };
        match self {
            Self::Done => EffectResult::Done,
            Self::Created(view) => EffectResult::Created(Box::new(view.observation())),
            Self::Taken => EffectResult::Taken(String::new()),
            Self::Found(Some(view)) => EffectResult::Found(Found::There(Box::new(view.observation()))),
            Self::Found(None) => EffectResult::Found(Found::Nothing),
            Self::Row(row) => EffectResult::Row(row.map(RowView::row)),
            Self::Recorded(state) => EffectResult::Recorded(state),
            Self::Moved(moved) => EffectResult::Moved(moved),
            Self::NotFound => refused("NotFound"),
            Self::AlreadyExists => refused("AlreadyExists"),
            Self::NoRoom => EffectResult::Postponed(Obstacle::Quota, String::new()),
            Self::Unknown => EffectResult::Unknown(String::new()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Real {
    Launch(Launch),
    Kill(Kill),
    Follow(Follow),
}

impl Real {
    fn begin(work: Work) -> Self {
        let job = |uid: Uid, before: u8, beside: u8| Job {
            pod_uid: uid_text(uid),
            signed: true,
            held: true,
            before: before.into(),
            beside: beside.into(),
            kill: KillCause::Request,
        };
        match work {
            Work::Launch { uid, before, beside } => Self::Launch(Launch::begin(job(uid, before, beside))),
            Work::Kill { uid, before, beside } => Self::Kill(Kill::begin(job(uid, before, beside))),
            Work::Seen(view) => Self::Follow(Follow::observed(Box::new(view.observation()))),
            Work::Missed(row) => Self::Follow(Follow::missed(row.row())),
        }
    }

    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Launch(machine) => machine,
            Self::Kill(machine) => machine,
            Self::Follow(machine) => machine,
        }
    }
}

/// A machine and its effect.
#[derive(Debug)]
struct Known {
    real: Real,
    ask: Ask,
    writes: bool,
}

#[derive(Debug, Default)]
struct Table {
    known: Vec<Known>,
    /// By the text of the machine: machines have no hash.
    ids: HashMap<String, Id>,
    begun: HashMap<Work, Id>,
    stepped: HashMap<(Id, Reply), Id>,
}

impl Table {
    fn id(&mut self, mut real: Real) -> Id {
        let text = format!("{real:?}");
        if let Some(id) = self.ids.get(&text) {
            return *id;
        }
        let id = Id::try_from(self.known.len()).expect("fewer than 65,536 machines");
        let effect = real.machine().effect();
        let (ask, writes) = (ask(effect), effect.writes_to_the_cluster());
        self.known.push(Known { real, ask, writes });
        self.ids.insert(text, id);
        id
    }
}

/// All machines that were reached.
#[derive(Debug, Default)]
pub(crate) struct Machines(RwLock<Table>);

impl Machines {
    pub(crate) fn begin(&self, work: Work) -> Id {
        if let Some(id) = self.read(|table| table.begun.get(&work).copied()) {
            return id;
        }
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let id = table.id(Real::begin(work));
        table.begun.insert(work, id);
        id
    }

    pub(crate) fn ask(&self, id: Id) -> Ask {
        self.read(|table| table.known[usize::from(id)].ask)
    }

    /// Returns whether its effect changes the cluster.
    pub(crate) fn writes(&self, id: Id) -> bool {
        self.read(|table| table.known[usize::from(id)].writes)
    }

    /// Passes the result of its effect to a machine.
    pub(crate) fn step(&self, id: Id, reply: Reply) -> Id {
        if let Some(next) = self.read(|table| table.stepped.get(&(id, reply)).copied()) {
            return next;
        }
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut real = table.known[usize::from(id)].real.clone();
        real.machine().take_result(reply.result());
        let next = table.id(real);
        table.stepped.insert((id, reply), next);
        next
    }

    /// The number of different machines, and of steps between them.
    pub(crate) fn count(&self) -> (usize, usize) {
        self.read(|table| (table.known.len(), table.stepped.len()))
    }

    fn read<T>(&self, read: impl FnOnce(&Table) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn ask(effect: &Effect) -> Ask {
    let uid = |text: &String| uid_number(Some(text));
    match effect {
        Effect::Read => Ask::Read,
        Effect::LookUp => Ask::LookUp,
        Effect::CreateBefore(_) => Ask::CreateBefore,
        Effect::CreatePod => Ask::CreatePod,
        Effect::RecordPod(text) => Ask::RecordPod(uid(text)),
        Effect::HandOver(_, text) => Ask::HandOver(uid(text)),
        Effect::CreateBeside(place, driver) => Ask::CreateBeside(*place as u8, uid(&driver.uid)),
        Effect::DeleteBefore(_) => Ask::DeleteBefore,
        Effect::Delete(text) => Ask::Delete(uid(text)),
        Effect::RemoveFinalizer(text) => Ask::RemoveFinalizer(uid(text)),
        Effect::RestoreLabels(text) => Ask::RestoreLabels(uid(text)),
        Effect::Advance(change, placement) => {
            let change = match change {
                StateChange::Launched => Change::Launched,
                StateChange::Running => Change::Running,
                StateChange::Ended(outcome) => Change::Ended(End {
                    state: outcome.state,
                    code: outcome.exit_code,
                    retried: outcome.retry_kind().is_some(),
                }),
            };
            Ask::Advance(change, uid_number(placement.pod_uid.as_deref()))
        }
        Effect::NoteWaiting { .. } => Ask::NoteWaiting,
        Effect::Settle(settled) => Ask::Settle { given_back: *settled == Settled::GivenBack },
    }
}
