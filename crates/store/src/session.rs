//! Settings of each connection: how statements are planned, and when the server cancels one.
//!
//! The client stops waiting for a statement after ten seconds (`error::within`). Its backend would continue to wait, for a lock
//! forever. So the server cancels first: a statement that waits for others never outlives its caller, backends don't accumulate
//! behind one locked row, and the result is certain (nothing was done) and not in doubt.

use std::time::Duration;

/// Workers find their rows through an index, in the order in which they need them, and write by key. Postgres' planner
/// estimates few rows where many come at once, or where there were none when it planned: it would read and sort all of them for
/// the first sixteen, or scan the table for one. A plan without an alternative is still used, but looks so expensive that it
/// would be JIT-compiled first. So the plan doesn't depend on the parameters, and is made once: reading the row of one observed
/// pod takes a quarter of the time that planning it takes.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_sort = off; SET enable_hashjoin = off; \
                        SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET jit = off";
/// The settings for requests, whose lists may have to be sorted.
const NO_TABLE: &str = "SET enable_seqscan = off; SET jit = off";
/// The settings for accepting, which is one statement of one shape and needn't be planned each time.
pub const PLANNED_ONCE: &str = "SET plan_cache_mode = force_generic_plan; SET jit = off";

/// Timeout of a statement in all pools but that of the leases: less than the ten seconds of its caller.
const STATEMENT: Duration = Duration::from_secs(9);
/// How long the server keeps a connection whose client acknowledges nothing.
const SILENT_PEER: Duration = Duration::from_secs(10);

/// The settings of a pool's connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    planner: &'static str,
    /// How long a statement waits for a lock.
    pub(super) lock: Duration,
    /// How long a statement may take in total.
    statement: Duration,
}

/// A client waits for each statement, and there are few connections: if a row is locked for longer, its own requests get a "try
/// again", and requests for other rows keep their connections.
pub(super) const REQUESTS: Session = Session { planner: NO_TABLE, lock: Duration::from_secs(2), statement: STATEMENT };
/// Like [`REQUESTS`], with another planner setting.
pub(super) const ACCEPTING: Session = Session { planner: PLANNED_ONCE, ..REQUESTS };
/// Workers have work in progress, and wait a little longer before they give it up.
pub(super) const WORKERS: Session = Session { planner: BY_INDEX, lock: Duration::from_secs(4), statement: STATEMENT };
/// A renewal is due every 750 ms and a lease lasts three seconds: a slow one must leave time for the next two.
pub(super) const LEASES: Session =
    Session { planner: BY_INDEX, lock: Duration::from_millis(500), statement: Duration::from_millis(750) };

impl Session {
    /// Returns the statements that run when a connection is opened.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that lost its client keeps the locks of its last statement until it notices.
    #[test]
    fn every_connection_limits_locks_statements_and_silence() {
        for session in [REQUESTS, ACCEPTING, WORKERS, LEASES] {
            let statements = session.statements();
            for setting in ["lock_timeout", "statement_timeout", "tcp_user_timeout"] {
                let (_, value) = statements.split_once(&format!("SET {setting} = ")).unwrap();
                let value: String = value.chars().take_while(char::is_ascii_digit).collect();
                assert!((1..=10_000).contains(&value.parse::<u32>().unwrap()), "{statements}");
            }
        }
    }
}
