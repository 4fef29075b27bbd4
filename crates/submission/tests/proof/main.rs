//! The argument of `docs/internals/argument.md`, checked exhaustively: the real engine on a small database, cluster and clock,
//! in all states within a bound. `make prove` has larger bounds, and `docs/internals/proof.md` says what this proves.

mod action;
mod bounds;
mod check;
mod cluster;
mod effects;
mod liveness;
mod machines;
mod model;
mod steps;
mod store;
mod truth;
mod view;
mod world;

use bounds::{Bounds, Seeded};
use check::check;
use clap::ValueEnum;

#[test]
fn no_state_within_the_bound_breaks_an_invariant() {
    for bounds in Bounds::of_tests() {
        let report = check(bounds, None, 1);
        println!("{report}");
        assert!(report.found.is_none(), "{report}");
    }
}

#[test]
fn each_seeded_error_is_found() {
    for error in Seeded::value_variants() {
        let report = check(error.bounds(), Some(*error), 1);
        println!("{report}");
        assert!(report.found.is_some(), "{error:?} isn't found: {report}");
    }
}
