//! What Postgres does alone with what an accepted submission leaves in it: the row, its objects, and its first event, in one
//! statement and on the disk when it is answered.

use std::time::Duration;

use futures::future::try_join_all;
use serde_json::Value;
use sparkgate::app::render::render;
use sqlx::{PgConnection, types::Json};
use tokio::time::Instant;

use crate::{
    figures::{request::request, spark::settings},
    servers::Database,
};

const ACCEPT: &str = "WITH drawn AS (SELECT nextval('submission_number') AS number), accepted AS (
        INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user, created_at,
            queued_at, name, owner, labels, fingerprint)
        SELECT 'driver-20261121000000-' || number, number, 'QUEUED', $1, '4.3.0', 'default', $2, 'spark', now(), now(),
            'nightly-orders-' || number, 'etl', '{}', $3
        FROM drawn ON CONFLICT DO NOTHING RETURNING id, attempt, state, created_at
    ), rendered AS (INSERT INTO manifests (submission_id, objects) SELECT id, $4 FROM accepted)
    INSERT INTO submission_events (submission_id, attempt, state, at) SELECT id, attempt, state, created_at FROM accepted";

/// Clients of Postgres alone, each with a connection of its own.
pub(super) struct Alone {
    connections: Vec<PgConnection>,
    request: Value,
    manifest: String,
}

impl Alone {
    pub(super) async fn connect(database: &Database, connections: usize) -> anyhow::Result<Self> {
        let connections = try_join_all((0..connections).map(|_| database.connect())).await?;
        let body = request(1, "default");
        let manifest = render(&body, &settings())?.to_string();
        Ok(Self { connections, request: serde_json::from_slice(&body)?, manifest })
    }

    /// Rows a second, each client busy for so long.
    pub(super) async fn rate(&mut self, time: Duration) -> anyhow::Result<f64> {
        let Self { connections, request, manifest } = self;
        let (request, manifest) = (&*request, &*manifest);
        let begun = Instant::now();
        let client = async |connection: &mut PgConnection| -> anyhow::Result<usize> {
            let mut rows = 0;
            while begun.elapsed() < time {
                let names = Json(serde_json::json!({"driverPod": "nightly-orders-0123456789abcdef-driver",
                    "configMap": "spark-drv-0123456789abcdef-conf-map",
                    "service": "nightly-orders-0123456789abcdef-driver-svc"}));
                let statement = sqlx::query(ACCEPT).bind(Json(request)).bind(names).bind([7_u8; 32].as_slice());
                statement.bind(manifest).execute(&mut *connection).await?;
                rows += 1;
            }
            Ok(rows)
        };
        let rows: usize = try_join_all(connections.iter_mut().map(client)).await?.into_iter().sum();
        Ok(rows as f64 / begun.elapsed().as_secs_f64())
    }
}
