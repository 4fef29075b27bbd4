//! `sparkgate config`: checks the settings, and shows where each comes from.

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use serde_json::json;

use super::{
    arguments::{Origin, ResolvedSettings},
    doctor::files,
    settings::{FileFault, Logs, Serve},
};
use sparkgate_service::doctor::{Finding, Level};

/// Shown instead of a secret.
const HIDDEN: &str = "(hidden)";

/// The result of a check: lines for the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    faults: Vec<String>,
    warnings: Vec<String>,
}

/// Checks the settings and the files that they name.
pub(super) async fn check(settings: &Serve, logs: &Logs, resolved: &ResolvedSettings, faults: &[FileFault]) -> Report {
    let mut report = Report { faults: faults.iter().map(ToString::to_string).collect(), warnings: Vec::new() };
    for Finding { level, message, remedy, .. } in files::check(settings, logs).await.findings {
        let text = remedy.map_or_else(|| message.clone(), |remedy| format!("{message}: {remedy}"));
        let text = format!("{text}{}", resolved.notes(&text));
        match level {
            Level::Failure => report.faults.push(text),
            Level::Warning => report.warnings.push(text),
            Level::Ok | Level::Skipped => {}
        }
    }
    report
}

impl Report {
    /// Prints the report.
    ///
    /// # Errors
    /// The output can't be written.
    pub(super) fn print(&self, file: Option<&Path>, mut output: impl Write) -> io::Result<ExitCode> {
        for fault in &self.faults {
            writeln!(output, "{fault}")?;
        }
        for warning in &self.warnings {
            writeln!(output, "warning: {warning}")?;
        }
        if !self.faults.is_empty() {
            return Ok(ExitCode::FAILURE);
        }
        match file {
            Some(file) => writeln!(output, "{}: the settings can be used", file.display())?,
            None => writeln!(output, "the settings can be used; no file of settings was given")?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints each setting with its value and its origin.
///
/// # Errors
/// The output can't be written.
pub(super) fn show(settings: &ResolvedSettings, as_json: bool, mut output: impl Write) -> anyhow::Result<()> {
    let value = |values: &[String], is_secret| match values {
        [] => None,
        _ if is_secret => Some(HIDDEN.to_owned()),
        values => Some(values.join(",")),
    };
    if as_json {
        let one = |setting: &super::arguments::ResolvedSetting| {
            let kind = match &setting.origin {
                Origin::Flag => json!({"kind": "flag"}),
                Origin::Variable(name) => json!({"kind": "variable", "name": name}),
                Origin::File { path, line } => json!({"kind": "file", "path": path, "line": line}),
                Origin::Default => json!({"kind": "default"}),
            };
            json!({"name": setting.name, "value": value(&setting.values, setting.is_secret), "origin": kind})
        };
        let all: Vec<_> = settings.0.iter().map(one).collect();
        writeln!(output, "{:#}", json!({"settings": all}))?;
        return Ok(());
    }
    let rows: Vec<_> = settings
        .0
        .iter()
        .map(|setting| (&setting.name, value(&setting.values, setting.is_secret).unwrap_or_default(), &setting.origin))
        .collect();
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or_default();
    let names = width(&mut rows.iter().map(|(name, ..)| name.chars().count()));
    let values = width(&mut rows.iter().map(|(_, value, _)| value.chars().count())).min(48);
    for (name, value, origin) in rows {
        writeln!(output, "{name:names$}  {value:values$}  {origin}")?;
    }
    Ok(())
}
