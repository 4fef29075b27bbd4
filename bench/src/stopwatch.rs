//! Wall-clock time, and how much of it the machine had: a hypervisor may give the processors to other machines.

use std::{fs, time::Duration};

use tokio::time::Instant;

/// A running stopwatch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    begun: Instant,
    processors: Processors,
}

/// A reading of the stopwatch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lap {
    pub(crate) elapsed: Duration,
    /// CPU steal: the share of the processors' time, from 0 to 1, that went to other machines while a process here was
    /// runnable.
    pub(crate) stolen: f64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { begun: Instant::now(), processors: Processors::now() }
    }

    pub(crate) fn lap(&self) -> Lap {
        Lap { elapsed: self.begun.elapsed(), stolen: Processors::now().stolen_since(self.processors) }
    }
}

impl Lap {
    /// Returns the part of the time that the machine had.
    pub(crate) fn given(&self) -> Duration {
        self.elapsed.mul_f64(1.0 - self.stolen)
    }
}

/// Time of all processors since the machine's start, in the kernel's ticks (`/proc/stat` of proc(5)).
#[derive(Debug, Clone, Copy, Default)]
struct Processors {
    all: u64,
    stolen: u64,
}

impl Processors {
    /// Reads the counters; zeros where the kernel has none.
    fn now() -> Self {
        fs::read_to_string("/proc/stat").map(|text| Self::read(&text)).unwrap_or_default()
    }

    fn read(text: &str) -> Self {
        // user, nice, system, idle, iowait, irq, softirq, steal; the remaining fields are already part of user.
        let ticks = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.filter_map(|ticks| ticks.parse().ok()).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or_default() }
    }

    fn stolen_since(self, before: Self) -> f64 {
        let stolen = self.stolen.saturating_sub(before.stolen) as f64;
        stolen / self.all.saturating_sub(before.all).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_time_is_measured_separately() {
        let before = Processors::read("cpu  100 0 50 800 40 0 10 0 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
        let after = Processors::read("cpu  150 0 60 820 40 0 10 20 30 0\n");
        assert!((after.stolen_since(before) - 0.2).abs() < 1e-9);
        let lap = Lap { elapsed: Duration::from_secs(10), stolen: 0.2 };
        assert_eq!(lap.given(), Duration::from_secs(8));
    }
}
