//! The metrics of the process itself, under the names that all client libraries of Prometheus use, from `/proc/self`.

use std::{fs, sync::atomic::Ordering};

use rustix::param::{clock_ticks_per_second, page_size};

use crate::catalogue::Metrics;

/// Sets the metrics of the process. Elsewhere than on Linux there are none.
pub(crate) fn read(metrics: &Metrics) {
    let ticks = clock_ticks_per_second() as f64;
    if let Ok(stat) = fs::read_to_string("/proc/self/stat")
        && let Some(stat) = Stat::parse(&stat)
    {
        let cpu = (stat.user_ticks + stat.system_ticks) / ticks;
        metrics.process_cpu.inner().store(cpu.to_bits(), Ordering::Relaxed);
        metrics.process_threads.set(stat.threads);
        metrics.process_virtual_memory.set(stat.virtual_bytes);
        metrics.process_resident_memory.set(stat.resident_pages * page_size() as f64);
        if let Some(boot) = boot_time() {
            metrics.process_start_time.set(boot + stat.start_ticks / ticks);
        }
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is the directory that is read here.
        metrics.process_open_fds.set(open.count().saturating_sub(1) as f64);
    }
    if let Some(most) = fs::read_to_string("/proc/self/limits").ok().as_deref().and_then(most_open_files) {
        metrics.process_max_fds.set(most);
    }
}

/// The part of `/proc/self/stat` that is reported (`proc_pid_stat(5)`).
#[derive(Debug, PartialEq)]
struct Stat {
    user_ticks: f64,
    system_ticks: f64,
    threads: f64,
    start_ticks: f64,
    virtual_bytes: f64,
    resident_pages: f64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The second field is the program's name in parentheses, which may contain any character.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first field after it is the third of the page.
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Some(Self {
            user_ticks: field(14)?,
            system_ticks: field(15)?,
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// Returns when the system was booted, in seconds since 1970.
fn boot_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Returns the soft limit of open files.
fn most_open_files(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_strange_name_is_read() {
        let text =
            "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 12345 1048576 77 18446744073709551615";
        let expected = Stat {
            user_ticks: 250.0,
            system_ticks: 50.0,
            threads: 9.0,
            start_ticks: 12345.0,
            virtual_bytes: 1_048_576.0,
            resident_pages: 77.0,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("42 (x) S"), None);
    }

    #[test]
    fn the_limit_of_open_files_is_the_soft_one() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 1048576              files     \n";
        assert_eq!(most_open_files(limits), Some(1024.0));
        assert_eq!(most_open_files("Max open files            unlimited            unlimited            files"), None);
    }
}
