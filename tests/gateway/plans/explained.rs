//! The plans of all statements of this thread, as `auto_explain` sends them.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use sqlx::{ConnectOptions, PgPool};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Layer, Registry,
    layer::{Context, SubscriberExt},
};

/// Lets Postgres explain each statement of new connections after its execution, in a notice.
pub(super) async fn explain_all(pool: &PgPool) {
    let settings = [
        "session_preload_libraries = 'auto_explain'",
        "auto_explain.log_min_duration = 0",
        "auto_explain.log_analyze = on",
        "auto_explain.log_timing = off",
        "auto_explain.log_format = json",
        "auto_explain.log_level = notice",
        "auto_explain.log_nested_statements = on",
    ];
    let all: String = settings
        .map(|setting| {
            format!("EXECUTE format('ALTER DATABASE %I SET {}', current_database());", setting.replace('\'', "''"))
        })
        .concat();
    let all = format!("LOAD 'auto_explain'; DO $$ BEGIN {all} END $$");
    sqlx::raw_sql(sqlx::AssertSqlSafe(all)).execute(pool).await.unwrap();
}

/// The statements with their plans.
#[derive(Debug, Clone, Default)]
struct Plans(Arc<Mutex<Vec<Value>>>);

impl<S: Subscriber> Layer<S> for Plans {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::postgres::notice" {
            event.record(&mut Message(self));
        }
    }
}

/// Takes the text of a notice.
struct Message<'a>(&'a Plans);

impl Visit for Message<'_> {
    fn record_str(&mut self, _: &Field, text: &str) {
        if let Some((_, plan)) = text.split_once("plan:\n")
            && let Ok(plan) = serde_json::from_str(plan)
        {
            self.0.0.lock().unwrap().push(plan);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// Collects plans, until it is dropped.
pub(super) struct Explained {
    plans: Plans,
    _guard: DefaultGuard,
}

impl Explained {
    pub(super) fn begin() -> Self {
        let plans = Plans::default();
        let guard = tracing::subscriber::set_default(Registry::default().with(plans.clone()));
        Self { plans, _guard: guard }
    }

    /// Runs a statement of the class on a new connection, and returns whether its plan is found.
    pub(super) async fn notices(&self, pool: &PgPool) -> bool {
        const WALK: &str = "SELECT number FROM submissions WHERE spark_user = 'absent' ORDER BY number LIMIT 1";
        let mut connection = pool.connect_options().as_ref().clone().connect().await.unwrap();
        sqlx::query(WALK).fetch_optional(&mut connection).await.unwrap();
        self.reading_more_than(super::MOST).iter().any(|greedy| greedy.ends_with(WALK))
    }

    /// Returns the statements, with one space for each white space.
    pub(super) fn texts(&self) -> BTreeSet<String> {
        self.plans.0.lock().unwrap().iter().map(text).collect()
    }

    /// Returns the statements whose plans read more rows of a table than this, each with the table.
    pub(super) fn reading_more_than(&self, most: f64) -> BTreeSet<String> {
        let plans = self.plans.0.lock().unwrap();
        let greedy = plans.iter().filter_map(|plan| {
            let (rows, what) = largest_read(&plan["Plan"]);
            (rows > most).then(|| format!("{rows} rows of {what}: {}", text(plan)))
        });
        greedy.collect()
    }
}

fn text(plan: &Value) -> String {
    super::source::spaced(plan["Query Text"].as_str().unwrap_or_default())
}

/// Returns the most rows that a node of the plan read, and how. A row that a filter removed was read, too.
fn largest_read(node: &Value) -> (f64, String) {
    let number = |field: &str| node[field].as_f64().unwrap_or_default();
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let read = number("Actual Rows") + number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
    let (table, index) = (&node["Relation Name"], &node["Index Name"]);
    let is_of_table = table.is_string() || index.is_string();
    let rows = if is_of_table { read * number("Actual Loops") } else { 0.0 };
    let own = (rows, format!("{table} ({kind}, index {index}, filter {})", node["Filter"]));
    let below = node["Plans"].as_array().into_iter().flatten().map(largest_read);
    below.fold(own, |most, one| if one.0 > most.0 { one } else { most })
}
