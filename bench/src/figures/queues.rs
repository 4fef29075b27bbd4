//! The costs of queues: rounds, claims and the overview as more and more submissions wait, and the rates of accepting and launching with
//! queues against without.

mod rates;
mod rounds;

use crate::{
    bench::{Bench, Name},
    report::Report,
};

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Queues, bench);
    rounds::measure(bench, &mut report).await?;
    rates::measure(bench, &mut report).await?;
    report.publish(bench)
}
