//! CPU time and memory of a process, and the machine's description, from the kernel (Linux: proc(5)).

use std::{fs, time::Duration};

use anyhow::Context;

/// The kernel's unit of CPU time, `USER_HZ`: a hundredth of a second on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// Fields of `/proc/<pid>/stat`, counted from 1: of the process itself, and of its children that have ended.
const UTIME: usize = 14;
const CUTIME: usize = 16;

/// A running process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// Returns the CPU time of all its threads so far, in user mode and in the kernel.
    pub(crate) fn cpu(self) -> anyhow::Result<Duration> {
        self.ticks(UTIME)
    }

    /// Returns its current memory in MB (10⁶ bytes).
    pub(crate) fn memory(self) -> anyhow::Result<f64> {
        self.status("VmRSS:")
    }

    /// Returns its peak memory in MB.
    pub(crate) fn peak_memory(self) -> anyhow::Result<f64> {
        self.status("VmHWM:")
    }

    /// Returns the CPU time of the process, of its descendants, and of those that have ended and that were waited for.
    pub(crate) fn cpu_of_tree(self) -> anyhow::Result<Duration> {
        self.tree().into_iter().map(|process| Ok(process.ticks(UTIME)? + process.ticks(CUTIME)?)).sum()
    }

    /// Returns the current memory of the process and its descendants in MB, with pages that several processes share
    /// divided among them.
    pub(crate) fn memory_of_tree(self) -> f64 {
        self.tree().into_iter().filter_map(|process| process.share_of_memory().ok()).sum()
    }

    /// Returns its current memory in MB, with its part of the pages that it shares with others.
    pub(crate) fn share_of_memory(self) -> anyhow::Result<f64> {
        self.field("smaps_rollup", "Pss:")
    }

    /// Returns the process and its descendants. One that ends meanwhile may be missing.
    pub(crate) fn tree(self) -> Vec<Self> {
        let mut tree = vec![self];
        let mut next = 0;
        while let Some(process) = tree.get(next).copied() {
            tree.extend(process.children().unwrap_or_default());
            next += 1;
        }
        tree
    }

    pub(crate) fn children(self) -> anyhow::Result<Vec<Self>> {
        let path = format!("/proc/{}/task", self.0);
        let mut children = Vec::new();
        // A child belongs to the thread that started it.
        for thread in fs::read_dir(&path).with_context(|| format!("reading {path}"))?.flatten() {
            let of_thread = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            children.extend(of_thread.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Self));
        }
        Ok(children)
    }

    /// Returns the sum of two adjacent times of `proc_pid_stat(5)`, user mode and kernel, starting at field `first`.
    fn ticks(self, first: usize) -> anyhow::Result<Duration> {
        let stat = self.read("stat")?;
        // The second field, the name, may contain spaces and parentheses.
        let after_name = stat.rsplit_once(')').context("a stat without a name")?.1;
        let fields = after_name.split_whitespace().skip(first - 3).take(2);
        let ticks = fields.map(str::parse::<u32>).sum::<Result<u32, _>>();
        Ok(TICK * ticks.with_context(|| format!("reading the CPU time of process {}", self.0))?)
    }

    fn status(self, field: &str) -> anyhow::Result<f64> {
        self.field("status", field)
    }

    /// Returns a field of a file in MB.
    fn field(self, file: &str, field: &str) -> anyhow::Result<f64> {
        let text = self.read(file)?;
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let kib: f64 = line.and_then(|rest| rest.trim().strip_suffix(" kB")).context("no such field")?.parse()?;
        Ok(kib * 1024.0 / 1e6)
    }

    fn read(self, file: &str) -> anyhow::Result<String> {
        let path = format!("/proc/{}/{file}", self.0);
        fs::read_to_string(&path).with_context(|| format!("reading {path}"))
    }
}

/// Returns the CPU time of all our children that have ended, including their own children.
pub(crate) fn cpu_of_ended_children() -> anyhow::Result<Duration> {
    Process(std::process::id()).ticks(CUTIME)
}

/// Returns the processor's model, the number of processors, and the memory.
pub(crate) fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory: f64 = field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processor = field("/proc/cpuinfo", "model name");
    format!("{cores} × {processor}, {:.0} GiB, Linux {}", memory / 1048576.0, kernel.trim())
}
