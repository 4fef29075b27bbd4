//! The model as Stateright checks it: which steps a state allows, and what must hold.

use std::sync::Arc;

use stateright::{Model, Property};

use crate::{
    action::{Action, Slot},
    bounds::{Bounds, Seeded},
    liveness::Settling,
    machines::{Ask, Machines},
    truth::Invariant,
    world::{Doing, World},
};

/// The gateway, within bounds, perhaps with an error.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    pub(crate) bounds: Bounds,
    pub(crate) seeded: Option<Seeded>,
    pub(crate) machines: Arc<Machines>,
    pub(crate) settling: Arc<Settling>,
}

impl Gateway {
    pub(crate) fn new(bounds: Bounds, seeded: Option<Seeded>) -> Self {
        Self { bounds, seeded, machines: Arc::default(), settling: Arc::default() }
    }

    pub(crate) fn has(&self, error: Seeded) -> bool {
        self.seeded == Some(error)
    }

    /// Returns the effect that a step carries out, if it is one of the engine's.
    pub(crate) fn asked(&self, world: &World, action: Action) -> Option<Ask> {
        let machine = match action {
            Action::Step(at, Slot::Task, _) => match world.replica(at).task?.doing {
                Doing::Machine(machine) => machine,
                Doing::Naming(_) | Doing::GivingBack => return None,
            },
            Action::Step(at, Slot::Following, _) => world.replica(at).following?.machine,
            Action::Arrive => return world.late.map(|late| late.ask),
            _ => return None,
        };
        Some(self.machines.ask(machine))
    }

    /// Does a step; `None` if the state doesn't allow it.
    pub(crate) fn step(&self, world: &World, action: Action) -> Option<World> {
        if action.is_fault() && world.faults == 0 {
            return None;
        }
        let mut next = *world;
        next.faults -= u8::from(action.is_fault());
        self.apply(&mut next, action)?;
        Some(next)
    }

    /// Returns whether a state, and what follows from it, keeps an invariant.
    pub(crate) fn holds(&self, invariant: Invariant, world: &World) -> bool {
        match invariant {
            Invariant::Ends => self.ends(world),
            stepwise => world.broken() != Some(stepwise),
        }
    }
}

impl Model for Gateway {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::start(self.bounds.faults, self.bounds.kills)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // What follows a broken invariant proves nothing.
        if world.broken().is_none() {
            actions.extend(Action::all());
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let next = self.step(world, action)?.canonical().0;
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        Invariant::properties()
    }
}
