//! Compares the replies with the rows in the database.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::{
    clients::{Entry, told},
    http::{Got, Reply},
    table::{Asked, Says, read},
};

/// How often each reply occurred: by request, reply, and state found in the database.
pub(crate) type Counts = BTreeMap<(&'static str, &'static str, &'static str), usize>;

#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Row {
    id: String,
    state: String,
    marker: Option<String>,
    idempotency_key: Option<String>,
    name: String,
    cleared: bool,
    finished_at: Option<DateTime<Utc>>,
    states: Vec<String>,
}

const ROWS: &str = "SELECT id, state, coalesce(request -> 'appArgs' ->> 0, name) AS marker, idempotency_key, name,
        cleared_at IS NOT NULL AS cleared, finished_at,
        ARRAY(SELECT e.state FROM submission_events e WHERE submission_id = s.id ORDER BY e.id) AS states
    FROM submissions s";

const ENDS: [&str; 5] = ["FINISHED", "FAILED", "KILLED", "ERROR", "LOST"];

impl Row {
    fn has_ended(&self) -> bool {
        ENDS.contains(&self.state.as_str())
    }

    fn ends(&self) -> bool {
        self.state == "KILLING" || self.has_ended()
    }
}

struct Judge<'a> {
    by_id: HashMap<&'a str, &'a Row>,
    by_marker: HashMap<&'a str, Vec<&'a Row>>,
    violations: Vec<String>,
}

pub(crate) async fn judge(pool: &PgPool, entries: &[Entry]) -> (Counts, Vec<String>, usize) {
    let rows: Vec<Row> = sqlx::query_as(ROWS).fetch_all(pool).await.unwrap();
    let mut by_marker = HashMap::<&str, Vec<&Row>>::new();
    for row in &rows {
        by_marker.entry(row.marker.as_deref().unwrap_or_default()).or_default().push(row);
    }
    let by_id = rows.iter().map(|row| (row.id.as_str(), row)).collect();
    let mut judge = Judge { by_id, by_marker, violations: Vec::new() };
    let mut counts = Counts::new();
    for entry in entries {
        let Some((asked, reply, says)) = read(entry.asked, &entry.got) else {
            judge.complain(entry, "the table has no such reply");
            continue;
        };
        let found = judge.entry(entry, says);
        *counts.entry((asked, reply, found)).or_default() += 1;
    }
    judge.keys(entries);
    judge.all_at_once(entries);
    let markers: BTreeSet<&str> = entries.iter().map(|entry| entry.marker.as_str()).collect();
    for row in &rows {
        if !row.marker.as_deref().is_some_and(|marker| markers.contains(marker)) {
            judge.violations.push(format!("{}: a row that no client requested", row.id));
        }
    }
    (counts, judge.violations, rows.len())
}

impl Judge<'_> {
    fn complain(&mut self, entry: &Entry, what: &str) {
        self.violations.push(format!("{what}: {entry:?}"));
    }

    /// Returns the state found of the submission that one request is about.
    fn entry(&mut self, entry: &Entry, says: Says) -> &'static str {
        if matches!(entry.asked, Asked::SparkCreate | Asked::Post | Asked::Session) {
            return self.create(entry, says);
        }
        let reply = match &entry.got {
            Got::Reply(reply) => Some(reply),
            _ => None,
        };
        let row = entry.id.as_deref().and_then(|id| self.by_id.get(id).copied());
        let Some(row) = row else {
            if entry.id.is_some() && matches!(says, Says::WillEnd | Says::State) {
                self.complain(entry, "there is no such row");
            }
            return "no row";
        };
        match says {
            Says::WillEnd if !row.ends() => self.complain(entry, &format!("killed, but {}", row.state)),
            Says::NothingToEnd if row.finished_at.is_none_or(|at| at > entry.ended) => {
                self.complain(entry, &format!("not ended then: {:?} {:?}", row.state, row.finished_at));
            }
            Says::NoSuch if entry.asked != Asked::Status || !row.cleared => self.complain(entry, "there is such a row"),
            Says::State | Says::WillEnd | Says::NothingToEnd => {
                if let Some(state) = reply.and_then(|reply| reply.body["state"].as_str())
                    && !row.states.iter().any(|had| had == state)
                {
                    self.complain(entry, &format!("it was never {state}: {:?}", row.states));
                }
            }
            _ => {}
        }
        match says {
            _ if row.has_ended() => "a row that has ended",
            _ if row.state == "KILLING" => "a row being killed",
            _ => "a live row",
        }
    }

    fn create(&mut self, entry: &Entry, says: Says) -> &'static str {
        let rows = self.by_marker.get(entry.marker.as_str()).cloned().unwrap_or_default();
        if rows.len() > 1 {
            self.complain(entry, &format!("{} rows of one request or key", rows.len()));
        }
        let row = rows.first().copied();
        let reply = match &entry.got {
            Got::Reply(reply) => Some(reply),
            _ => None,
        };
        let id = reply.and_then(|reply| told(&reply.body));
        match (says, row) {
            (Says::Kept, None) => self.complain(entry, "stored, but there is no row"),
            (Says::Kept, Some(row)) if id != Some(&row.id) || entry.key != row.idempotency_key => {
                self.complain(entry, &format!("stored, but under {} and {:?}", row.id, row.idempotency_key));
            }
            (Says::NotKept, Some(_)) if entry.key.is_none() => self.complain(entry, "not stored, but there is a row"),
            (Says::InDoubt, Some(row)) if entry.key.is_none() && id.is_some_and(|id| id != row.id) => {
                self.complain(entry, &format!("if stored, then under an id other than {}", row.id));
            }
            _ => {}
        }
        self.named(entry, reply, id);
        if row.is_some() { "a row" } else { "no row" }
    }

    /// Checks the earlier submission that caused a conflict.
    fn named(&mut self, entry: &Entry, reply: Option<&Reply>, id: Option<&str>) {
        let Some(Reply { status: status @ (409 | 422), .. }) = reply else { return };
        let Some(id) = id else { return };
        match (status, self.by_id.get(id)) {
            (_, None) => self.complain(entry, "the earlier submission doesn't exist"),
            (409, Some(other)) => {
                if !other.name.starts_with("unique-") || other.finished_at.is_some_and(|at| at < entry.begun) {
                    self.complain(entry, &format!("it doesn't have the name, or had ended: {other:?}"));
                }
            }
            (_, Some(other)) => {
                if other.idempotency_key != entry.key || other.marker.as_deref() == Some(&entry.marker) {
                    self.complain(entry, &format!("it doesn't have the key, or is the same request: {other:?}"));
                }
            }
        }
    }

    /// Checks that each key has one row, that the row belongs to one of the requests that may have created it, and that
    /// at most one of them got a 201.
    fn keys(&mut self, entries: &[Entry]) {
        let mut said = BTreeMap::<&str, (bool, usize)>::new();
        for entry in entries.iter().filter(|entry| entry.key.is_some()) {
            let says = read(entry.asked, &entry.got).map(|(_, _, says)| says);
            let (may, created) = said.entry(&entry.marker).or_default();
            *may |= matches!(says, Some(Says::Kept | Says::InDoubt));
            *created += usize::from(matches!(&entry.got, Got::Reply(reply) if reply.status == 201));
        }
        let mut by_key = BTreeMap::<&str, usize>::new();
        for row in self.by_id.values().filter_map(|row| row.idempotency_key.as_deref()) {
            *by_key.entry(row).or_default() += 1;
        }
        self.violations.extend(by_key.iter().filter(|(_, rows)| **rows > 1).map(|(key, _)| format!("{key}: two rows")));
        for (marker, (may, created)) in said {
            if self.by_marker.contains_key(marker) && !may {
                self.violations.push(format!(
                    "{marker}: a row, although the replies to all its requests say that nothing was stored"
                ));
            }
            if created > 1 {
                self.violations.push(format!("{marker}: {created} times 201"));
            }
        }
    }

    /// Checks that submissions stored before a killall have ended, and that submissions that a client knew to have
    /// ended before a clear are hidden.
    fn all_at_once(&mut self, entries: &[Entry]) {
        let last = |asked: Asked| {
            let done = |entry: &&Entry| {
                entry.asked == asked && read(asked, &entry.got).is_some_and(|(_, _, says)| says == Says::Done)
            };
            entries.iter().filter(done).map(|entry| entry.begun).max()
        };
        let (killed, cleared) = (last(Asked::KillAll), last(Asked::Clear));
        for entry in entries {
            let Got::Reply(reply) = &entry.got else { continue };
            let says = read(entry.asked, &entry.got).map(|(_, _, says)| says);
            let id = entry.id.as_deref().or_else(|| told(&reply.body));
            let Some(row) = id.and_then(|id| self.by_id.get(id).copied()) else { continue };
            if says == Some(Says::Kept) && killed.is_some_and(|killed| entry.ended < killed) && !row.ends() {
                self.complain(entry, "all were killed, but not this one");
            }
            let known_ended = reply.body["state"].as_str().is_some_and(|state| ENDS.contains(&state));
            if known_ended && cleared.is_some_and(|cleared| entry.ended < cleared) && !row.cleared {
                self.complain(entry, "all were cleared, but not this one");
            }
        }
    }
}
