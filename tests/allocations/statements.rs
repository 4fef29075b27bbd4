//! Records the statements that this thread sends to Postgres, from sqlx's log.

use std::sync::{Arc, Mutex};

use tracing::{
    Dispatch, Event, Subscriber,
    field::{Field, Visit},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
};

/// The statements, in their order, from its creation until it is dropped.
pub(crate) struct Statements {
    seen: Arc<Mutex<Vec<String>>>,
    _listening: DefaultGuard,
    /// With a single subscriber, an event that the thread of another test sends first would stay off for this one.
    _another: Dispatch,
}

/// Returns whether the statement configures or checks a connection: these run when a connection is opened and at
/// intervals, not for each submission.
fn is_of_a_connection(statement: &str) -> bool {
    statement.starts_with("SET ") || statement.contains("pg_is_in_recovery()")
}

struct Listener(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Text {
    summary: String,
    statement: String,
}

impl Statements {
    pub(crate) fn listen() -> Self {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let subscriber = tracing_subscriber::registry().with(Listener(seen.clone()));
        let another = Dispatch::new(tracing_subscriber::registry());
        Self { seen, _listening: tracing::subscriber::set_default(subscriber), _another: another }
    }

    /// Returns the statements since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// Returns whether the statement is about leases, which are renewed at intervals and not for each submission.
pub(crate) fn is_of_a_lease(statement: &str) -> bool {
    statement.contains("INSERT INTO leases") || statement.starts_with("UPDATE leases")
}

/// Returns the beginning of each statement, one per line.
pub(crate) fn list(statements: &[String]) -> String {
    let line = |statement: &String| format!("    {}\n", statement.chars().take(100).collect::<String>());
    statements.iter().map(line).collect()
}

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            let mut text = Text::default();
            event.record(&mut text);
            let statement = if text.statement.is_empty() { text.summary } else { text.statement };
            let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
            if !is_of_a_connection(&statement) {
                self.0.lock().unwrap().push(statement);
            }
        }
    }
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => value.clone_into(&mut self.summary),
            "db.statement" => value.clone_into(&mut self.statement),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
