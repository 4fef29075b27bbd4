//! Prints the figures as a table, and writes them as JSON and into the page that publishes them.

use std::{fs, io::Write};

use anyhow::Context;
use serde::Serialize;

use crate::{
    bench::{Bench, Name},
    number::number,
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
        Self { name: name.as_str(), machine: machine(), quick: bench.quick, figures: Vec::new(), since }
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
        page::write(bench, self.name, &self.markdown())
    }

    /// Returns the table of the page.
    fn markdown(&self) -> String {
        let runs = self.figures.iter().map(|figure| figure.runs.len()).max().unwrap_or_default();
        let mut table = format!(
            "Measured {} on {}.\n\n| | median | min – max | unit | bar |\n|---|---|---|---|---|\n",
            if runs == 1 { "once".to_owned() } else { format!("up to {runs} times") },
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
