//! Statements of the admission, beside submissions that wait in two hundred queues.

use std::time::Duration;

use anyhow::Context;
use sparkgate::store::{Largest, replica};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    bench::Bench,
    number::count,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, rows},
};

/// Numbers of submissions that wait. The same database grows from one to the next.
const WAITING: [usize; 3] = [1_000, 10_000, 100_000];
const QUEUES: usize = 200;
/// As in the gateway.
const HEADS: u32 = 32;
const ADMITTED_AT_ONCE: usize = 200;
const CLAIMED_AT_ONCE: i64 = 16;
const TIMES: usize = 20;
const LEASE: Duration = Duration::from_secs(25);
/// The longest time of a statement with the most submissions, as a multiple of that with the fewest. A round reads up to 32 of each tenant,
/// which the fewest don't have.
const BAR: f64 = 2.0;
const ROUND_BAR: f64 = 8.0;

const WHAT: [&str; 5] = [
    "what runs and who is next",
    "admission of 200",
    "claim of 16",
    "backlogs of all queues",
    "backlog and bound of one",
];

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let database = Database::migrated(bench).await?;
    let mut there = 0;
    let mut first: Option<[f64; WHAT.len()]> = None;
    for waiting in WAITING {
        rows::waiting(&database, there + 1, waiting - there, QUEUES).await?;
        there = waiting;
        let took = times(&database).await?;
        let medians = took.each_ref().map(Samples::median);
        for (what, took) in WHAT.iter().zip(&took) {
            report.add(format!("{} wait in {QUEUES} queues: {what}", count(waiting)), "ms", took);
        }
        let first = first.get_or_insert(medians);
        if waiting == WAITING[WAITING.len() - 1] {
            for (at, what) in WHAT.iter().enumerate() {
                let ratio = [medians[at] / first[at]].into_iter().collect();
                let bar = if at == 0 { ROUND_BAR } else { BAR };
                let fewest = count(WAITING[0]);
                report.judge(format!("{what}: time relative to that of {fewest}"), "", &ratio, Bar::AtMost(bar));
            }
        }
    }
    database.drop_it().await
}

async fn times(database: &Database) -> anyhow::Result<[Samples; WHAT.len()]> {
    let store = database.store().await?;
    let session = Uuid::new_v4();
    let largest = |queue| Largest { queue: rows::queue(queue), millicores: Some(400_000), ..Largest::default() };
    let largest: Vec<_> = (0..QUEUES).map(largest).collect();
    let mut took: [Samples; WHAT.len()] = Default::default();
    let [rounds, admissions, claims, backlogs, bounds] = &mut took;
    for _ in 0..TIMES {
        // A time with the most rows may take longer than a lease.
        for lease in [&replica(session), "queues"] {
            store.acquire_lease(lease, session, LEASE).await?;
        }
        let round = timed(rounds, store.queue_round(HEADS, &largest, &[])).await?;
        let heads = round.places.iter().filter_map(|place| place.waiting.first());
        let picks: Vec<_> = heads.take(ADMITTED_AT_ONCE).map(|head| (head.number, head.attempt)).collect();
        let admitted = timed(admissions, store.admit((session, "queues"), round.version, &picks)).await?;
        admitted.context("another replica admits")?;
        timed(claims, store.claim(session, CLAIMED_AT_ONCE, &[], &[])).await?;
        timed(backlogs, store.queue_backlogs()).await?;
        timed(bounds, store.queue_entrance(&rows::queue(0))).await?;
        // They wait again, so that each time is that of as many.
        rows::wait_again(database).await?;
        store.add_up_backlogs(1_000_000).await?;
    }
    // The next number of submissions has another session.
    store.end_leases(session).await?;
    store.close().await;
    Ok(took)
}

async fn timed<T, E: Into<anyhow::Error>>(
    took: &mut Samples,
    statement: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    let begun = Instant::now();
    let result = statement.await.map_err(Into::into)?;
    took.push(begun.elapsed().as_secs_f64() * 1e3);
    Ok(result)
}
