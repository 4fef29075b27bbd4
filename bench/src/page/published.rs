//! Reads the figures again that this run, or one before, wrote as JSON.

use std::{fs, path::Path};

use anyhow::Context;
use serde::Deserialize;

/// A figure of an earlier run.
#[derive(Debug, Deserialize)]
pub(super) struct Published {
    what: String,
    median: f64,
}

/// Reads the figures that a command wrote.
pub(super) fn read(directory: &Path, name: &str) -> anyhow::Result<Vec<Published>> {
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
pub(super) fn median(figures: &[Published], what: &str) -> anyhow::Result<f64> {
    let figure =
        figures.iter().find(|figure| figure.what == what).with_context(|| format!("no figure is named `{what}`"))?;
    Ok(figure.median)
}
