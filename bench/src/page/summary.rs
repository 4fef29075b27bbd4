//! The first lines of the page: what a reader who decides wants to know.

use std::{collections::HashMap, path::Path};

use anyhow::Context;

use super::published;
use crate::number::number;

/// One line each. Braces hold a report and one of its figures, of which the median is written. What a line compares is of one report:
/// another one may be of a faster machine.
const LINES: [&str; 10] = [
    "**{peers/Sparkgate: loop as wide as the cores: driver pods} driver pods a minute**, each requested when the last one of its client is there. \
     spark-submit creates {peers/spark-submit: loop as wide as the cores: driver pods}, Kubeflow's operator \
     {peers/Kubeflow's operator: loop as wide as the cores: driver pods}.",
    "**{peers/Sparkgate: CPU of a submission} ms of CPU for a submission**, with Postgres'. spark-submit takes \
     {peers/spark-submit: CPU of a submission} ms, the operator {peers/Kubeflow's operator: CPU of a submission}; the API server's share is \
     {peers/Sparkgate: CPU of kube-apiserver and etcd for it}, {peers/spark-submit: CPU of kube-apiserver and etcd for it} and \
     {peers/Kubeflow's operator: CPU of kube-apiserver and etcd for it} ms.",
    "**Accepted: {accept/16 clients: accepted} a second** from 16 clients, each synced to the disk, p99 {accept/16 clients: p99} ms: \
     {accept/16 clients: share of Postgres' own rate} of what Postgres alone does. Side by side, Spark's master accepts \
     {peers/Spark's master: accepted, 16 clients} in its memory, and Sparkgate {peers/Sparkgate: accepted, 16 clients}.",
    "**Launched: {launch/6000 jobs: Sparkgate} drivers a second**, \
     {launch/6000 jobs: share of the bare client's rate, without CPU steal} of a client that only creates the objects.",
    "**Status: {peers/Sparkgate: status read, 16 clients} reads a second** to 16 clients; Spark's master gives \
     {peers/Spark's master: status read, 16 clients}.",
    "**A pod's change is seen within {lag/500 live drivers, 100 changes/s: seen on the event stream, p99} ms** (p99, 500 live drivers, 100 \
     changes a second), with 10,000 within {lag/10000 live drivers, 100 changes/s: seen on the event stream, p99} ms.",
    "**Memory: {memory/idle} MB when idle**, {memory/100000 live drivers: while it watches them} MB with 100,000 live drivers, \
     {peers/Sparkgate: peak memory} MB at most while it launches; the operator's peak is {peers/Kubeflow's operator: peak memory} MB.",
    "**Beside a million ended submissions**, {growth/1,000,000 ended: accepted, 16 clients} are accepted a second, beside a thousand \
     {growth/1,000 ended: accepted, 16 clients}.",
    "**An access file costs**: an API key and a policy leave {access/16 clients, API key: share of the rate without an access file} of the rate.",
    "**Sessions**: a small request takes {sessions/small request, 1 client: through the gateway, p50} ms to a driver that answers in \
     {sessions/small request, 1 client: straight to the driver, p50}; 500 open streams take {sessions/memory with 500 open streams} MB in all.",
];

/// Returns the lines with their figures.
pub(super) fn lines(directory: &Path) -> anyhow::Result<String> {
    let mut reports = HashMap::new();
    let mut figure = |report: &str, what: &str| {
        if !reports.contains_key(report) {
            reports.insert(report.to_owned(), published::read(directory, report)?);
        }
        published::median(&reports[report], what).with_context(|| format!("looking for a figure of {report}"))
    };
    LINES.iter().map(|line| Ok(format!("- {}\n", filled(line, &mut figure)?))).collect()
}

fn filled(line: &str, figure: &mut impl FnMut(&str, &str) -> anyhow::Result<f64>) -> anyhow::Result<String> {
    let mut parts = line.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').with_context(|| format!("a brace isn't closed: {part}"))?;
        let (report, what) = name.split_once('/').with_context(|| format!("{name} names no report"))?;
        text.push_str(&number(figure(report, what)?));
        text.push_str(rest);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_become_figures() {
        let mut figure = |report: &str, what: &str| {
            assert_eq!(report, "lag");
            Ok(if what == "a/b" { 1234.4 } else { 0.5 })
        };
        assert_eq!(filled("p50 {lag/x}, p99 {lag/a/b} ms", &mut figure).unwrap(), "p50 0.500, p99 1,234 ms");
        for line in LINES {
            assert!(filled(line, &mut |_, _| Ok(1.0)).is_ok(), "{line}");
        }
    }
}
