//! The log line of each state change: one for each event, with the same state, by whatever statement.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use sparkgate::{
    store::{Actor, AuditNote, Scope, Store},
    submission::{Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::PgPool;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{accept, claim_one, draw, new, session};

/// Collects the log of the current thread as lines of JSON.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Begins to collect, until the guard is dropped.
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing::Level::INFO)
            .with_writer(log.clone());
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    /// Returns the lines of state changes.
    fn changes(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap().clone();
        let lines = String::from_utf8(bytes).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["message"] == "state changed").collect()
    }
}

fn placed(uid: &str) -> Placement {
    Placement { pod_uid: Some(uid.to_owned()), ..Placement::default() }
}

fn ended(state: State, exit_code: Option<i32>, reason: &str) -> StateChange {
    StateChange::Ended(Outcome { exit_code, ..Outcome::new(state, reason, "the driver wrote: hush") })
}

/// Runs a submission up to its driver's start.
async fn running(store: &Store, holder: uuid::Uuid) -> SubmissionId {
    let id = accept(store, "a").await;
    launched(store, holder, &id, 1).await;
    assert!(store.advance(&id, 1, None, &StateChange::Running, &placed("u1")).await.unwrap());
    id
}

async fn launched(store: &Store, holder: uuid::Uuid, id: &SubmissionId, attempt: i32) {
    let claimed = claim_one(store, holder).await;
    assert_eq!(&claimed.id, id);
    let uid = format!("u{attempt}");
    assert!(store.record_pod(id, attempt, claimed.epoch, &uid).await.unwrap().is_some());
    assert!(store.advance(id, attempt, Some(claimed.epoch), &StateChange::Launched, &placed(&uid)).await.unwrap());
}

#[sqlx::test]
async fn each_event_has_one_log_line_whatever_wrote_it(pool: PgPool) {
    let (log, _guard) = Log::begin();
    // With a single subscriber, a line that the thread of another test logs first would stay off for this one.
    let _another = tracing::Dispatch::new(tracing_subscriber::registry());
    let store = Store::new(pool.clone());
    let holder = session(&store).await;
    let everything = Scope::installation();

    let finished = running(&store, holder).await;
    let end = ended(State::Finished, Some(0), "Completed");
    assert!(store.advance(&finished, 1, None, &end, &placed("u1")).await.unwrap());
    // Late and repeated writes change nothing, and say nothing.
    assert!(!store.advance(&finished, 1, None, &end, &placed("u1")).await.unwrap());
    assert!(!store.advance(&finished, 1, None, &StateChange::Running, &placed("u1")).await.unwrap());
    assert!(!store.all().request_kill(&finished, &everything, None).await.unwrap().live);

    let refused = accept(&store, "b").await;
    let claimed = claim_one(&store, holder).await;
    let refusal = ended(State::Error, None, "Forbidden");
    assert!(store.advance(&refused, 1, Some(claimed.epoch), &refusal, &Placement::default()).await.unwrap());

    let retried = running(&store, holder).await;
    sqlx::query("UPDATE submissions SET max_retries_infrastructure = 1 WHERE id = $1")
        .bind(retried.as_str())
        .execute(&pool)
        .await
        .unwrap();
    let evicted = ended(State::Failed, None, "Evicted");
    assert!(store.advance(&retried, 1, None, &evicted, &placed("u1")).await.unwrap());
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(&pool).await.unwrap();
    launched(&store, holder, &retried, 2).await;
    assert!(store.advance(&retried, 2, None, &ended(State::Lost, None, "PodGone"), &placed("u2")).await.unwrap());

    // One caller kills twice: the second request changes nothing.
    let killed = running(&store, holder).await;
    let actor = Actor {
        principal: "corp:alice".to_owned(),
        address: None,
        request_id: "r".to_owned(),
        note: AuditNote::default(),
    };
    for _ in 0..2 {
        assert!(store.all().request_kill(&killed, &everything, Some(&actor)).await.unwrap().live);
    }
    let gone = ended(State::Killed, Some(143), "Killed");
    assert!(store.advance(&killed, 1, None, &gone, &placed("u1")).await.unwrap());

    let overdue = running(&store, holder).await;
    let waiting = accept(&store, "c").await;
    sqlx::query(
        "UPDATE submissions SET deadline = now() - interval '1 s', run_timeout = 1, start_timeout = 1,
                 started_at = now() - interval '1 h', queued_at = now() - interval '2 h' WHERE id IN ($1, $2)",
    )
    .bind(overdue.as_str())
    .bind(waiting.as_str())
    .execute(&pool)
    .await
    .unwrap();
    assert_eq!(store.kill_overdue(10, None).await.unwrap().killed, 2);
    let stopped = ended(State::Killed, Some(143), "RunTimeout");
    assert!(store.advance(&overdue, 1, None, &stopped, &placed("u1")).await.unwrap());

    // Some at once, of another tenant.
    let live = running(&store, holder).await;
    for _ in 0..2 {
        let drawn = draw(&store).await;
        let mut other = new(drawn, "d");
        other.tenant = "red".to_owned();
        store.accept(other).await.unwrap();
    }
    assert_eq!(store.all().request_kill_of_all(None).await.unwrap(), 3);
    assert_eq!(store.all().clear_ended(None).await.unwrap(), 8);

    let events: Vec<(String, i32, String, Option<String>, String)> = sqlx::query_as(
        "SELECT submission_id, e.attempt, e.state, e.reason, tenant FROM submission_events e JOIN submissions s
             ON s.id = submission_id ORDER BY number, e.id",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let mut lines: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in log.changes() {
        lines.entry(line["submission"].as_str().unwrap().to_owned()).or_default().push(line);
    }
    assert_eq!(lines.values().map(Vec::len).sum::<usize>(), events.len());
    let states: Vec<_> = events.iter().map(|(_, _, state, _, _)| state.as_str()).collect();
    assert!(State::ALL.iter().all(|state| states.contains(&state.as_str())), "all states: {states:?}");
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    for (id, attempt, state, reason, tenant) in &events {
        let line = lines.get_mut(id).unwrap().remove(0);
        assert_eq!(line["state"], *state, "{line}");
        assert_eq!((&line["attempt"], &line["tenant"]), (&(*attempt).into(), &tenant.as_str().into()), "{line}");
        assert_eq!(line.get("reason").and_then(Value::as_str), reason.as_deref(), "{line}");
        assert_eq!(line.get("from").and_then(Value::as_str), before.insert(id, state), "{line}");
        assert_eq!(line["level"], "INFO");
    }
    let code = |id: &SubmissionId| {
        let changes = log.changes();
        let codes = changes.iter().filter(|line| line["submission"] == id.as_str());
        codes.filter_map(|line| Some(line.get("failure_code")?.as_str().unwrap().to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(code(&finished), Vec::<String>::new());
    assert_eq!(code(&refused), ["REFUSED"]);
    assert_eq!(code(&retried), ["EVICTED", "LOST"]);
    assert_eq!(code(&killed), ["KILLED_ON_REQUEST"]);
    assert_eq!(code(&overdue), ["RUN_TIMEOUT"]);
    assert_eq!(code(&waiting), ["START_TIMEOUT"]);
    assert_eq!(code(&live), Vec::<String>::new());
    assert!(!String::from_utf8(log.0.lock().unwrap().clone()).unwrap().contains("hush"), "no output of drivers");
}

/// A new statement that writes events has to log them.
#[test]
fn each_file_with_a_statement_that_writes_events_logs_the_change() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/store/src");
    let (mut folders, mut writers) = (vec![folder], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let statements = text.matches("INSERT INTO submission_events").count();
            writers += statements;
            let logs = text.matches(".log()").count() + text.matches("ChangedRow::record").count();
            assert!(statements == 0 || logs >= statements, "{}", path.display());
        }
    }
    assert!(writers >= 8, "{writers}");
}
