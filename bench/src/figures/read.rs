//! Status and list replies per second of a gateway with some history, compared with what Postgres alone answers to the
//! same statements on as many connections as the gateway has for requests.

mod postgres;

use std::time::Duration;

use sparkgate::store::Filter;
use sparkgate::submission::State;

use super::accept::{CONNECTIONS, nowhere};
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::clients::{Calls, clients, in_words},
    report::Report,
    samples::Samples,
    servers::{Database, rows},
};

const CLIENTS: [usize; 2] = [1, 16];
/// Rows in the table. Some of these submissions run.
const ROWS: usize = 10_000;
const RUNNING: usize = 100;
/// The page size of a list.
const PAGE: u32 = 50;

/// A kind of request.
#[derive(Debug, Clone, Copy)]
enum Question {
    Status,
    Submission,
    List,
    Running,
}

impl Question {
    const ALL: [Self; 4] = [Self::Status, Self::Submission, Self::List, Self::Running];

    fn name(self) -> &'static str {
        match self {
            Self::Status => "Spark's status",
            Self::Submission => "one submission",
            Self::List => "the newest 50",
            Self::Running => "the newest 50 that run, of one owner",
        }
    }

    fn path(self, n: usize, rows: usize) -> String {
        // Spreads the ids: consecutive rows are on the same page of the table.
        let id = rows::id(1 + n * 7919 % rows);
        match self {
            Self::Status => format!("/v1/submissions/status/{id}"),
            Self::Submission => format!("/v1/submissions/{id}"),
            Self::List => format!("/v1/submissions?limit={PAGE}"),
            Self::Running => format!("/v1/submissions?limit={PAGE}&state=RUNNING&owner=etl"),
        }
    }

    fn filter(self) -> Filter {
        match self {
            Self::Running => {
                Filter { states: vec![State::Running], owner: Some("etl".to_owned()), ..Filter::default() }
            }
            _ => Filter::default(),
        }
    }
}

#[derive(Default)]
struct Figures {
    own: Samples,
    of: [Calls; CLIENTS.len()],
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Read, bench);
    let mut figures: [Figures; Question::ALL.len()] = Default::default();
    let rows = bench.size(ROWS);
    let database = Database::migrated(bench).await?;
    let running = bench.size(RUNNING);
    rows::history(&database, 1, rows - running, Duration::from_secs(7 * 24 * 3600)).await?;
    let first = rows - running + 1;
    rows::live(&database, "RUNNING", first, &(first..=rows).map(rows::uid).collect::<Vec<_>>()).await?;
    for _ in 0..bench.runs {
        once(bench, &database, rows, &mut figures).await?;
    }
    database.drop_it().await?;
    for (question, figures) in Question::ALL.into_iter().zip(&figures) {
        let name = question.name();
        report.add(format!("{name}: Postgres alone, {CONNECTIONS} connections"), "/s", &figures.own);
        for (clients, of) in CLIENTS.into_iter().zip(&figures.of) {
            let clients = in_words(clients);
            report.add(format!("{name}, {clients}"), "/s", &of.rate);
            report.add(format!("{name}, {clients}: p50"), "ms", &of.p50);
            report.add(format!("{name}, {clients}: p99"), "ms", &of.p99);
            report.add(format!("{name}, {clients}: CPU of the gateway"), "ms/call", &of.cpu);
        }
    }
    report.publish(bench)
}

async fn once(bench: &Bench, database: &Database, rows: usize, figures: &mut [Figures]) -> anyhow::Result<()> {
    let time = Duration::from_millis(bench.size(2500) as u64);
    for (question, figures) in Question::ALL.into_iter().zip(&mut *figures) {
        figures.own.push(postgres::rate(database, question, rows, time).await?);
    }
    let directory = tempfile::tempdir()?;
    let gateway = Gateway::start(bench, directory.path(), database.url(), &nowhere(&directory)?, &[]).await?;
    for (question, figures) in Question::ALL.into_iter().zip(figures) {
        let ask = async |count: usize, time: Duration| {
            clients(&gateway, count, time, async |connection, n| connection.get(&question.path(n, rows)).await).await
        };
        ask(CLIENTS[1], time / 5).await?;
        for (count, of) in CLIENTS.into_iter().zip(&mut figures.of) {
            of.take(&ask(count, time).await?);
        }
    }
    Ok(())
}
