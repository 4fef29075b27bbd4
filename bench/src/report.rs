//! Prints the figures as a table, writes them as JSON, and reads that again for the page that publishes them.

use std::{fs, io::Write, path::Path};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::{
    bench::{Bench, Name},
    page,
    process::machine,
    samples::Samples,
    stopwatch::Stopwatch,
};

/// The figures of one command.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The name of the JSON file.
    name: &'static str,
    machine: String,
    quick: bool,
    figures: Vec<Figure>,
    #[serde(skip)]
    has_own_table: bool,
    #[serde(skip)]
    since: Stopwatch,
}

#[derive(Debug, Serialize)]
struct Figure {
    what: String,
    unit: &'static str,
    min: f64,
    median: f64,
    max: f64,
    runs: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bar: Option<Bar>,
}

/// The target for the median of a figure.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
        }
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(bar) => write!(f, "≥ {}", number(*bar)),
            Self::AtMost(bar) => write!(f, "≤ {}", number(*bar)),
        }
    }
}

impl Report {
    /// Creates an empty report, before anything is measured.
    pub(crate) fn new(name: Name, bench: &Bench) -> Self {
        let since = Stopwatch::start();
        Self {
            name: name.as_str(),
            machine: machine(),
            quick: bench.quick,
            figures: Vec::new(),
            has_own_table: false,
            since,
        }
    }

    /// Adds a figure: one value per run.
    pub(crate) fn add(&mut self, what: impl Into<String>, unit: &'static str, runs: &Samples) {
        self.figure(what.into(), unit, runs, None);
    }

    /// Adds a figure that has a target.
    pub(crate) fn judge(&mut self, what: impl Into<String>, unit: &'static str, runs: &Samples, bar: Bar) {
        self.figure(what.into(), unit, runs, Some(bar));
    }

    fn figure(&mut self, what: String, unit: &'static str, runs: &Samples, bar: Option<Bar>) {
        let (min, median, max) = (runs.min(), runs.median(), runs.max());
        self.figures.push(Figure { what, unit, min, median, max, runs: runs.values().to_vec(), bar });
    }

    /// Prints the table and writes the JSON.
    pub(crate) fn publish(mut self, bench: &Bench) -> anyhow::Result<()> {
        let stolen = self.since.lap().stolen * 100.0;
        self.add("time that the hypervisor kept", "%", &[stolen].into_iter().collect());
        let mut out = std::io::stdout().lock();
        out.write_all(self.table().as_bytes()).context("printing the figures")?;
        let file = bench.out.join(format!("{}.json", self.name));
        fs::create_dir_all(&bench.out).with_context(|| format!("creating {}", bench.out.display()))?;
        let json = serde_json::to_string_pretty(&self).context("writing the figures as JSON")?;
        fs::write(&file, json + "\n").with_context(|| format!("writing {}", file.display()))?;
        if self.has_own_table { Ok(()) } else { page::write(bench, self.name, &self.markdown()) }
    }

    /// The page shows these figures as a table of their own form, which the caller writes.
    pub(crate) fn with_own_table(mut self) -> Self {
        self.has_own_table = true;
        self
    }

    /// Returns the table of the page.
    fn markdown(&self) -> String {
        let runs = self.figures.iter().map(|figure| figure.runs.len()).max().unwrap_or_default();
        let mut table = format!(
            "Of {runs} run{} on {}.\n\n| | median | min – max | unit | bar |\n|---|---|---|---|---|\n",
            if runs == 1 { "" } else { "s" },
            self.machine
        );
        for Figure { what, unit, min, median, max, bar, .. } in &self.figures {
            let range = if min == max { String::new() } else { format!("{} – {}", number(*min), number(*max)) };
            let bar = bar.map_or_else(String::new, |bar| {
                format!("{bar}: {}", if bar.is_met(*median) { "met" } else { "**missed**" })
            });
            table.push_str(&format!("| {what} | {} | {range} | {unit} | {bar} |\n", number(*median)));
        }
        table
    }

    fn table(&self) -> String {
        let width = self.figures.iter().map(|figure| figure.what.chars().count()).max().unwrap_or_default();
        let quick = if self.quick { "  (quick: not for publishing)" } else { "" };
        let mut table =
            format!("\n{}{quick}\n{:width$}  {:>10} {:>10} {:>10}\n", self.name, "", "min", "median", "max");
        for figure in &self.figures {
            let [min, median, max] = [figure.min, figure.median, figure.max].map(number);
            let bar = figure.bar.map_or_else(String::new, |bar| {
                let verdict = if bar.is_met(figure.median) { "met" } else { "MISSED" };
                format!("  bar {bar}: {verdict}")
            });
            let line = format!("{:width$}  {min:>10} {median:>10} {max:>10}  {}{bar}", figure.what, figure.unit);
            table.push_str(line.trim_end());
            table.push('\n');
        }
        table
    }
}

/// A figure of an earlier run.
#[derive(Debug, Deserialize)]
pub(crate) struct Published {
    what: String,
    median: f64,
}

/// Reads the figures that a command wrote.
pub(crate) fn read(directory: &Path, name: &str) -> anyhow::Result<Vec<Published>> {
    #[derive(Deserialize)]
    struct File {
        figures: Vec<Published>,
    }
    let file = directory.join(format!("{name}.json"));
    let text =
        fs::read(&file).with_context(|| format!("reading {}: `make bench ARGS={name}` writes it", file.display()))?;
    let File { figures } = serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))?;
    Ok(figures)
}

/// Returns the median of a figure.
pub(crate) fn median(figures: &[Published], what: &str) -> anyhow::Result<f64> {
    let figure =
        figures.iter().find(|figure| figure.what == what).with_context(|| format!("no figure is named `{what}`"))?;
    Ok(figure.median)
}

/// Formats the value with its significant digits, and commas between thousands.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        ..0.995 => format!("{value:.3}"),
        ..99.5 => format!("{value:.2}"),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no figure is as large, and its sign is written before"
        )]
        size => format!("{}{}", if value < 0.0 { "-" } else { "" }, count(size.round() as usize)),
    }
}

/// Returns the number with thousands separators.
pub(crate) fn count(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_significant_digits() {
        let written = [0.1234, 9.996, 99.6, 999.6, -4351.0, 1_234_567.0].map(number);
        assert_eq!(written, ["0.123", "10.00", "100", "1,000", "-4,351", "1,234,567"]);
    }
}
