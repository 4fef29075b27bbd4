//! The rate of Postgres alone: the gateway's own statement for one submission at a time. When it returns, the row, its
//! objects and its first event are on the disk.

use std::{
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    time::Duration,
};

use anyhow::ensure;
use chrono::Utc;
use futures::future::try_join_all;
use sparkgate::{
    app::render::render,
    spark::{DriverNames, NameEntropy, NamedRequest, rest::parse_partial},
    store::{DEFAULT_TENANT, Drawn, NewSubmission, Options, PLANNED_ONCE, accept_on},
};
use sparkgate_testing::request::request;
use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    figures::spark::settings,
    servers::{Database, rows},
};

/// Clients of Postgres alone, each with a connection of its own, on a database that nothing else uses.
pub(super) struct Alone {
    connections: Vec<PgConnection>,
    like: NewSubmission,
    number: AtomicI64,
}

impl Alone {
    pub(super) async fn connect(database: &Database, connections: usize) -> anyhow::Result<Self> {
        let mut connections = try_join_all((0..connections).map(|_| database.connect())).await?;
        for connection in &mut connections {
            sqlx::raw_sql(PLANNED_ONCE).execute(&mut *connection).await?;
        }
        Ok(Self { connections, like: submission()?, number: AtomicI64::new(0) })
    }

    /// Returns rows per second, with the first `count` clients busy for `time`.
    pub(super) async fn rate(&mut self, count: usize, time: Duration) -> anyhow::Result<f64> {
        let Self { connections, like, number } = self;
        let (begun, before) = (Instant::now(), number.load(Relaxed));
        let client = async |connection: &mut PgConnection| -> anyhow::Result<()> {
            while begun.elapsed() < time {
                let number = number.fetch_add(1, Relaxed) + 1;
                let drawn = Drawn { id: rows::id(usize::try_from(number)?).parse()?, number, at: Utc::now() };
                ensure!(accept_on(connection, &NewSubmission { drawn, ..like.clone() }).await?, "{number} was there");
            }
            Ok(())
        };
        try_join_all(connections.iter_mut().take(count).map(client)).await?;
        Ok((number.load(Relaxed) - before) as f64 / begun.elapsed().as_secs_f64())
    }
}

/// Returns what the gateway would store for the measured request.
fn submission() -> anyhow::Result<NewSubmission> {
    let (body, settings) = (request(1, "default"), settings());
    let (request, _) = parse_partial(&body, settings.version)?;
    let (id, now) = (Uuid::nil(), Utc::now());
    let entropy = NameEntropy::from_uuids(id, id, id, id);
    let named = NamedRequest::new(request, settings.version)?;
    Ok(NewSubmission {
        drawn: Drawn { id: rows::id(0).parse()?, number: 0, at: now },
        names: DriverNames::for_request(&named, now.timestamp_millis(), &entropy),
        request: named.request,
        spark_version: settings.version,
        spark_user: settings.user.clone(),
        namespace: "default".to_owned(),
        manifest: render(&body, &settings)?.to_string(),
        sealed: None,
        name: "nightly-orders-1".to_owned(),
        owner: "etl".to_owned(),
        tenant: DEFAULT_TENANT.to_owned(),
        principal: "anonymous:anonymous".to_owned(),
        actor: None,
        options: Options::default(),
        bounds: Default::default(),
        queue: None,
        trace: None,
        fingerprint: vec![7; 32],
        origins: Default::default(),
    })
}
