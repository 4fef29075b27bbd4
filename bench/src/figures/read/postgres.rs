//! The rate of Postgres alone: the statements of the gateway's store, with rows decoded as the store decodes them, and
//! nothing else.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::ensure;
use futures::future::try_join_all;
use sparkgate::store::{Prices, Store};
use sqlx::postgres::PgPoolOptions;
use tokio::time::Instant;

use super::{CONNECTIONS, PAGE, Question};
use crate::servers::{Database, rows};

/// Returns answers per second, with each connection busy all the time.
pub(super) async fn rate(database: &Database, question: Question, rows: usize, time: Duration) -> anyhow::Result<f64> {
    let connections = u32::try_from(CONNECTIONS)?;
    let pool = PgPoolOptions::new().max_connections(connections).min_connections(connections);
    let store = Store::new(pool.test_before_acquire(false).connect(database.url()).await?);
    let number = AtomicUsize::new(0);
    let filter = question.filter();
    let begun = Instant::now();
    let client = async || -> anyhow::Result<()> {
        while begun.elapsed() < time {
            let id = rows::id(1 + number.fetch_add(1, Relaxed) * 7919 % rows).parse()?;
            let found = match question {
                Question::Status => store.all().find(&id).await?.is_some(),
                Question::Submission => store.all().document(&id, Prices::default()).await?.is_some(),
                Question::List | Question::Running => {
                    !store.all().submissions(&filter, None, PAGE).await?.items.is_empty()
                }
            };
            ensure!(found, "{question:?} returns no row");
        }
        Ok(())
    };
    try_join_all((0..CONNECTIONS).map(|_| client())).await?;
    let rate = number.load(Relaxed) as f64 / begun.elapsed().as_secs_f64();
    store.close().await;
    Ok(rate)
}
