//! Allocates ids: in a round trip of its own, or without one for requests that follow others closely.

use std::io;

use chrono::{DateTime, Utc};

use super::spares::Drawn;
use crate::{
    error::{Error, likewise, mark, statement_span, within},
    group_commit::BatchWriter,
    store::Store,
};
use sparkgate_metrics::metrics;

const ACTION: &str = "allocating a submission's id";

impl Store {
    /// Allocates an id. An unused id leaves no trace.
    pub async fn draw(&self) -> Result<Drawn, Error> {
        let groups = &self.groups.accept;
        if let Some(spare) = groups.spares.take() {
            return Ok(spare);
        }
        let span = statement_span(ACTION);
        let drawn = groups.drawing.call((), Some(self.patience / 2), || Drawer(self.clone())).await;
        // Whether it was allocated or not, no submission was accepted with it.
        let drawn = drawn
            .unwrap_or_else(|why| Err(Error::Unavailable { action: ACTION, source: io::Error::other(why).into() }));
        mark(&span, &drawn);
        drawn
    }
}

/// Allocates as many ids as there are calls.
struct Drawer(Store);

impl BatchWriter<(), Result<Drawn, Error>> for Drawer {
    async fn write(&self, group: Vec<()>) -> Vec<Result<Drawn, Error>> {
        metrics().group_size.with(["allocate"]).observe(group.len() as f64);
        match self.draw(group.len()).await {
            Ok(numbers) => numbers.into_iter().map(|(number, at)| Ok(Drawn::new(number, at))).collect(),
            Err(error) => group.iter().map(|()| Err(likewise(&error))).collect(),
        }
    }
}

impl Drawer {
    async fn draw(&self, count: usize) -> Result<Vec<(i64, DateTime<Utc>)>, Error> {
        let taken = self.0.to_accept(ACTION).await?;
        let numbers =
            sqlx::query_as("SELECT nextval('submission_number'), clock_timestamp() FROM generate_series(1, $1)")
                .bind(i32::try_from(count).unwrap_or(i32::MAX));
        within(ACTION, taken.read_all(numbers)).await
    }
}
