//! What each connection begins with: how statements are planned, and when the server gives one up.
//!
//! The client stops waiting for a statement after ten seconds (`error::within`), and its backend would go on waiting, for a
//! lock for ever. So the server gives up first: a statement that waits for others never outlives its caller, backends don't
//! pile up behind one locked row, and the answer is certain (nothing was done) and not in doubt.

use std::time::Duration;

/// What workers look for is in an index, in the order in which they want it, and what they write has a key. Postgres' planner
/// knows of few rows where many come at once, or where there were none when it planned: it would read and sort all of them for
/// the first sixteen, or read the table for one. What can't be done otherwise still is, and looks so expensive then that it
/// would be compiled first. So a plan doesn't hang on what is asked for, and is made once: reading the row of one pod that was
/// seen takes a quarter of the time that planning it takes.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_sort = off; SET enable_hashjoin = off; \
                        SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET jit = off";
/// The same for requests, whose lists may have to be sorted.
const NO_TABLE: &str = "SET enable_seqscan = off; SET jit = off";
/// Accepting is one statement of one shape, which needn't be planned each time.
pub const PLANNED_ONCE: &str = "SET plan_cache_mode = force_generic_plan; SET jit = off";

/// A statement of any pool but that of the leases: less than the ten seconds of its caller.
const STATEMENT: Duration = Duration::from_secs(9);
/// How long the server keeps a connection whose peer acknowledges nothing.
const SILENT_PEER: Duration = Duration::from_secs(10);

/// The settings of a pool's connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    planner: &'static str,
    /// How long a statement waits for a lock.
    lock: Duration,
    /// How long it may take in all.
    statement: Duration,
}

/// A client waits behind each, and there are few connections: a row that is locked for longer costs its own requests a
/// "try again", and not those of others their connection.
pub(super) const REQUESTS: Session = Session { planner: NO_TABLE, lock: Duration::from_secs(2), statement: STATEMENT };
/// As [`REQUESTS`].
pub(super) const ACCEPTING: Session = Session { planner: PLANNED_ONCE, ..REQUESTS };
/// Workers hold something in their hands, and wait a little longer before they put it down.
pub(super) const WORKERS: Session = Session { planner: BY_INDEX, lock: Duration::from_secs(4), statement: STATEMENT };
/// A renewal is due every 750 ms and a lease lasts three seconds: a slow one must leave time for the next two.
pub(super) const LEASES: Session =
    Session { planner: BY_INDEX, lock: Duration::from_millis(500), statement: Duration::from_millis(750) };

impl Session {
    /// Returns the statements that a connection begins with.
    pub(super) fn statements(self) -> String {
        let Self { planner, lock, statement } = self;
        format!(
            "{planner}; SET lock_timeout = {}; SET statement_timeout = {}; SET tcp_user_timeout = {}",
            lock.as_millis(),
            statement.as_millis(),
            SILENT_PEER.as_millis()
        )
    }
}
