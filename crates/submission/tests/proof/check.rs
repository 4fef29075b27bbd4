//! Runs the checker, and tells what it found.

use std::{
    fmt,
    time::{Duration, Instant},
};

use stateright::{Checker, HasDiscoveries, Model};

use crate::{
    action::Action,
    bounds::{Bounds, Seeded},
    model::Gateway,
    world::World,
};

/// A broken invariant, and the shortest way to it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) invariant: &'static str,
    /// The steps in words.
    pub(crate) trace: Vec<String>,
}

/// What the checker visited and found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) bounds: Bounds,
    pub(crate) seeded: Option<Seeded>,
    pub(crate) states: usize,
    pub(crate) steps: usize,
    pub(crate) depth: usize,
    pub(crate) machines: (usize, usize),
    pub(crate) took: Duration,
    pub(crate) found: Option<Found>,
}

/// Visits all states within the bounds, or until an invariant is broken. With one thread, the trace is the shortest.
pub(crate) fn check(bounds: Bounds, seeded: Option<Seeded>, threads: usize) -> Report {
    let begun = Instant::now();
    let mut report = visit(bounds, seeded, threads, None);
    // The checker goes on for some states after it has found something, and keeps the last trace.
    while let Some(found) = &report.found {
        let shorter = visit(bounds, seeded, 1, Some(found.trace.len() - 1));
        if shorter.found.is_none() {
            break;
        }
        report = shorter;
    }
    Report { took: begun.elapsed(), ..report }
}

/// Visits the states that at most `steps` steps reach.
fn visit(bounds: Bounds, seeded: Option<Seeded>, threads: usize, steps: Option<usize>) -> Report {
    let gateway = Gateway::new(bounds, seeded);
    let mut checker = gateway.clone().checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    if let Some(steps) = steps {
        // The checker counts states, and leaves out those at the depth itself.
        checker = checker.target_max_depth(steps + 2);
    }
    let checker = checker.spawn_bfs().join();
    let mut all: Vec<_> = checker.discoveries().into_iter().collect();
    all.sort_by_key(|(name, path)| (path.clone().into_actions().len(), *name));
    let found = all.into_iter().next().map(|(invariant, path)| {
        let trace = in_fixed_names(&gateway, path.into_actions());
        Found { invariant, trace }
    });
    Report {
        bounds,
        seeded,
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        machines: gateway.machines.count(),
        took: Duration::ZERO,
        found,
    }
}

/// Returns the steps of a trace in words, with the same name for each replica throughout.
fn in_fixed_names(gateway: &Gateway, actions: Vec<Action>) -> Vec<String> {
    let mut world = World::start(gateway.bounds.faults, gateway.bounds.kills);
    let mut are_swapped = false;
    let told = |action: Action| {
        let asked = gateway.asked(&world, action).map(|ask| format!(": {ask:?}")).unwrap_or_default();
        let fixed = if are_swapped { action.swapped() } else { action };
        if let Some(next) = gateway.step(&world, action) {
            let (canonical, swaps) = next.canonical();
            world = canonical;
            are_swapped ^= swaps;
        }
        format!("{fixed:?}{asked}")
    };
    actions.into_iter().map(told).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        let Self { bounds, states, steps, depth, machines: (machines, stepped), .. } = self;
        if let Some(error) = self.seeded {
            write!(f, "{error:?}: ")?;
        }
        write!(
            f,
            "{bounds}: {states} states, {steps} steps, depth {depth}, {machines} machines with {stepped} steps, {seconds:.1} s"
        )?;
        if let Some(Found { invariant, trace }) = &self.found {
            write!(f, "\n  broken after {} steps: {invariant}", trace.len())?;
            for (number, action) in (1..).zip(trace) {
                write!(f, "\n  {number:>3}. {action}")?;
            }
        }
        Ok(())
    }
}
