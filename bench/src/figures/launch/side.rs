//! The totals of one side over all its turns, and its figures.

use std::{thread::available_parallelism, time::Duration};

use crate::{samples::Samples, stopwatch::Lap};

/// The processes that use CPU time while jobs are launched.
const PARTS: [&str; 4] = ["kube-apiserver and etcd", "Postgres", "the gateway", "the harness"];
/// The index of Postgres in [`PARTS`].
const POSTGRES: usize = 1;

/// CPU time of each of [`PARTS`].
pub(super) type Cpu = [Duration; PARTS.len()];

/// All turns of one side in one run.
#[derive(Debug, Default)]
pub(super) struct Side {
    jobs: usize,
    elapsed: Duration,
    /// The part of the wall-clock time that the hypervisor left to this machine.
    given: Duration,
    cpu: Cpu,
}

impl Side {
    pub(super) fn add(&mut self, jobs: usize, lap: Lap, cpu: Cpu) {
        self.jobs += jobs;
        self.elapsed += lap.elapsed;
        self.given += lap.given();
        for (all, more) in self.cpu.iter_mut().zip(cpu) {
            *all += more;
        }
    }

    /// Returns jobs per second of wall-clock time.
    pub(super) fn rate(&self) -> f64 {
        self.jobs as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns jobs per second of the time that the machine had. Both sides keep all processors busy.
    pub(super) fn rate_of_given(&self) -> f64 {
        self.jobs as f64 / self.given.as_secs_f64()
    }

    /// Returns jobs per second of the time that Postgres left to the others: elsewhere Postgres has a machine of its
    /// own.
    pub(super) fn rate_beside_postgres(&self) -> anyhow::Result<f64> {
        let processors = available_parallelism()?.get() as f64;
        let taken = self.cpu[POSTGRES].as_secs_f64() / processors;
        Ok(self.jobs as f64 / (self.given.as_secs_f64() - taken))
    }
}

/// One value per run.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) rate: Samples,
    /// CPU steal in percent.
    pub(super) stolen: Samples,
    cpu: [Samples; PARTS.len()],
}

impl Figures {
    pub(super) fn push(&mut self, side: &Side) {
        self.rate.push(side.rate());
        self.stolen.push((1.0 - side.given.as_secs_f64() / side.elapsed.as_secs_f64()) * 100.0);
        for (samples, cpu) in self.cpu.iter_mut().zip(side.cpu) {
            samples.push(cpu.as_secs_f64() * 1e3 / side.jobs as f64);
        }
    }

    /// Returns the CPU time of each part that used some, in milliseconds per job.
    pub(super) fn cpu(&self) -> impl Iterator<Item = (&'static str, &Samples)> {
        PARTS.into_iter().zip(&self.cpu).filter(|(_, cpu)| cpu.max() > 0.0)
    }
}
