//! The peers beside each other.

use std::io::Write;

use anyhow::Context;

use crate::{
    bench::{Bench, Peer},
    number::number,
    page,
    report::Report,
    samples::Samples,
};

/// Something that is measured of several peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measure {
    what: String,
    unit: &'static str,
    more_is_better: bool,
}

impl Measure {
    /// A measure of which more is better.
    pub(super) fn more(what: impl Into<String>, unit: &'static str) -> Self {
        Self { what: what.into(), unit, more_is_better: true }
    }

    /// A measure of which less is better.
    pub(super) fn less(what: impl Into<String>, unit: &'static str) -> Self {
        Self { what: what.into(), unit, more_is_better: false }
    }
}

struct Row {
    measure: Measure,
    /// One value per run, for each of [`Peer::ALL`].
    cells: [Samples; Peer::ALL.len()],
}

/// Rows in the order in which they were measured first.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds the value of a run.
    pub(super) fn put(&mut self, measure: Measure, peer: Peer, value: f64) {
        let at = self.rows.iter().position(|row| row.measure == measure).unwrap_or_else(|| {
            self.rows.push(Row { measure, cells: Default::default() });
            self.rows.len() - 1
        });
        self.rows[at].cells[peer as usize].push(value);
    }

    pub(super) fn add_to(&self, report: &mut Report) {
        for Row { measure, cells } in &self.rows {
            for peer in Peer::ALL.into_iter().filter(|peer| cells[*peer as usize].len() > 0) {
                report.add(format!("{}: {}", peer.as_str(), measure.what), measure.unit, &cells[peer as usize]);
            }
        }
    }

    /// Prints the medians as a table of Markdown, with the rows in which another peer is better, and writes it into the page.
    pub(super) fn publish(&self, bench: &Bench) -> anyhow::Result<()> {
        let names = Peer::ALL.map(Peer::as_str).join(" | ");
        let mut text =
            format!("\n| | {names} | unit | better than the best of the others |\n|---|---|---|---|---|---|---|\n");
        for row in &self.rows {
            let cells =
                row.cells.each_ref().map(|cell| if cell.len() == 0 { "–".to_owned() } else { number(cell.median()) });
            let Measure { what, unit, .. } = &row.measure;
            text.push_str(&format!("| {what} | {} | {unit} | {} |\n", cells.join(" | "), row.verdict()));
        }
        std::io::stdout().lock().write_all(text.as_bytes()).context("printing the table")?;
        page::write(bench, "peers", &text)
    }
}

impl Row {
    /// Returns how many times better Sparkgate is than the best of the others: less than 1 where it loses.
    fn verdict(&self) -> String {
        let own = &self.cells[Peer::Sparkgate as usize];
        let others = Peer::ALL.into_iter().filter(|peer| *peer != Peer::Sparkgate);
        let others = others.map(|peer| &self.cells[peer as usize]).filter(|cell| cell.len() > 0).map(Samples::median);
        let best = if self.measure.more_is_better { others.reduce(f64::max) } else { others.reduce(f64::min) };
        let Some(best) = best.filter(|_| own.len() > 0) else { return String::new() };
        let better = if self.measure.more_is_better { own.median() / best } else { best / own.median() };
        format!("{} ×{}", number(better), if better < 1.0 { ": **Sparkgate loses**" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_who_is_better() {
        let mut table = Table::default();
        let (rate, time) = (Measure::more("rate", "/s"), Measure::less("time", "ms"));
        table.put(rate.clone(), Peer::Submit, 10.0);
        table.put(rate.clone(), Peer::Master, 40.0);
        table.put(rate, Peer::Sparkgate, 20.0);
        table.put(time.clone(), Peer::Operator, 40.0);
        table.put(time, Peer::Sparkgate, 20.0);
        let verdicts: Vec<_> = table.rows.iter().map(Row::verdict).collect();
        assert_eq!(verdicts, ["0.500 ×: **Sparkgate loses**", "2.00 ×"]);
    }
}
