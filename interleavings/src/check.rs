//! How many orders are tried.

use std::{future::Future, time::Instant};

use shuttle::{Config, Runner, future::block_on, scheduler::RandomScheduler};

#[derive(Debug)]
pub(super) struct Check {
    /// Of each world.
    pub(super) orders: usize,
    pub(super) seed: Option<u64>,
}

impl Check {
    /// Runs `world` once for each order. What must be true is asserted in it, and a task that waits for ever is reported.
    pub(super) fn all<F: Future<Output = ()> + Send + 'static>(
        &self,
        what: &str,
        world: impl Fn() -> F + Send + Sync + 'static,
    ) {
        let scheduler = match self.seed {
            Some(seed) => RandomScheduler::new_from_seed(seed, self.orders),
            None => RandomScheduler::new(self.orders),
        };
        let begun = Instant::now();
        let orders = Runner::new(scheduler, Config::default()).run(move || block_on(world()));
        println!("{orders} orders in {:.1} s: {what}", begun.elapsed().as_secs_f64());
    }
}
