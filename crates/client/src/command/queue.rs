//! `sparkgate queue`.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::Outcome;
use crate::{
    api::{Api, Call},
    clean, document,
    error::Error,
    options::{Gateway, ListFormat},
    screen::{self, note},
    table::{Cell, Column, cut, whole},
};

/// Queues: who gets the cluster next.
#[derive(Debug, Subcommand)]
pub enum Queue {
    /// List the queues that you may use: what runs in them, and what waits.
    List(List),
    /// Admit nothing of a queue. What runs goes on.
    Pause(Change),
    /// Accept nothing in a queue. What waits is admitted.
    Drain(Change),
    /// Accept and admit again.
    Open(Change),
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    gateway: Gateway,
    /// Output format: a text table, also with more columns (wide), only names (name), the gateway's JSON unchanged, or the same as YAML.
    #[arg(short, long, default_value = "table", value_name = "FORMAT", help_heading = "Gateway")]
    output: ListFormat,
}

#[derive(Debug, Args)]
pub struct Change {
    #[command(flatten)]
    gateway: Gateway,
    /// The name of the queue.
    #[arg(value_name = "QUEUE")]
    queue: String,
    /// Why, for other people.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// A queue, as far as it is displayed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Document {
    name: String,
    state: String,
    changed: Option<Changed>,
    weight: u32,
    fair_share: f64,
    caps: Amounts,
    running: Amounts,
    waiting: u64,
    held: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Changed {
    by: String,
    reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Amounts {
    submissions: Option<u64>,
    pods: Option<u64>,
    cores: Option<f64>,
    memory_bytes: Option<u64>,
    extended: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Documents {
    queues: Vec<Box<RawValue>>,
}

impl Queue {
    pub(super) async fn run(self) -> Outcome {
        match self {
            Self::List(list) => list.run().await,
            Self::Pause(change) => change.run("paused").await,
            Self::Drain(change) => change.run("draining").await,
            Self::Open(change) => change.run("open").await,
        }
    }
}

const COLUMNS: [Column<'static>; 9] = [
    whole("QUEUE"),
    whole("STATE"),
    whole("SHARE"),
    whole("RUNNING"),
    whole("PODS"),
    whole("CORES"),
    whole("MEMORY"),
    whole("WAITING"),
    whole("HELD"),
];

/// The columns of a wide list in addition.
const WIDE: [Column<'static>; 3] = [whole("WEIGHT"), cut("RESOURCES"), cut("CHANGED BY")];

impl List {
    async fn run(self) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let call = Call::get("listing queues", &["queues"]);
        let answer = api.send(&call).await?;
        if self.output.is_document() {
            self.output.document(&answer.body)?;
            return Ok(0);
        }
        let Documents { queues } = document::read(call.action(), &answer.body)?;
        let queues = queues.iter().map(|item| document::read(call.action(), item.get().as_bytes()));
        let queues: Vec<Document> = queues.collect::<Result<_, Error>>()?;
        match self.output {
            ListFormat::Name => {
                let names: String = queues.iter().map(|one| format!("{}\n", clean::line(&one.name))).collect();
                return screen::text(&names).map(|()| 0);
            }
            ListFormat::Wide => {
                let rows: Vec<_> = queues.iter().map(|one| [row(one), wide(one)].concat()).collect();
                screen::table(&[&COLUMNS[..], &WIDE].concat(), &rows)?;
            }
            _ => screen::table(&COLUMNS, &queues.iter().map(row).collect::<Vec<_>>())?,
        }
        if queues.is_empty() {
            note("no queues: submissions are launched as they come");
        }
        Ok(0)
    }
}

fn row(queue: &Document) -> Vec<Cell> {
    let Document { running, caps, .. } = queue;
    let count = |count: Option<u64>| count.map(|count| count.to_string());
    vec![
        Cell::new(&queue.name),
        Cell::new(&queue.state),
        Cell::new(&format!("{:.0} %", queue.fair_share * 100.0)),
        Cell::new(&used(count(running.submissions), count(caps.submissions))),
        Cell::new(&used(count(running.pods), count(caps.pods))),
        Cell::new(&used(running.cores.map(cores), caps.cores.map(cores))),
        Cell::new(&used(running.memory_bytes.map(gib), caps.memory_bytes.map(gib))),
        Cell::new(&queue.waiting.to_string()),
        Cell::new(&queue.held.to_string()),
    ]
}

fn wide(queue: &Document) -> Vec<Cell> {
    let names = queue.caps.extended.keys().chain(queue.running.extended.keys());
    let names: std::collections::BTreeSet<_> = names.collect();
    let each = names.into_iter().map(|name| {
        let count = |amounts: &Amounts| amounts.extended.get(name).map(u64::to_string);
        format!("{name}={}", used(count(&queue.running), count(&queue.caps)))
    });
    let changed = queue.changed.as_ref().map(|changed| match &changed.reason {
        Some(reason) => format!("{}: {reason}", changed.by),
        None => changed.by.clone(),
    });
    vec![
        Cell::new(&queue.weight.to_string()),
        Cell::new(&each.collect::<Vec<_>>().join(" ")),
        Cell::new(&changed.unwrap_or_default()),
    ]
}

/// Formats what is used, of how much.
fn used(running: Option<String>, cap: Option<String>) -> String {
    let running = running.unwrap_or_else(|| "0".to_owned());
    cap.map_or_else(|| running.clone(), |cap| format!("{running}/{cap}"))
}

fn cores(cores: f64) -> String {
    format!("{cores:.1}").trim_end_matches(".0").to_owned()
}

fn gib(bytes: u64) -> String {
    format!("{:.1}Gi", bytes as f64 / (1024.0 * 1024.0 * 1024.0)).replace(".0Gi", "Gi")
}

impl Change {
    async fn run(self, state: &str) -> Outcome {
        let api = Api::new(&self.gateway)?;
        let action = format!("changing the queue {}", self.queue);
        let body = json!({"state": state, "reason": self.reason}).to_string();
        let call = Call::replace(action, &["queues", &self.queue, "state"], body);
        api.send(&call).await?;
        screen::line(&format!("{} {state}", clean::line(&self.queue)))?;
        Ok(0)
    }
}
