//! The figures in `docs/internals/parity.md`.

use std::{collections::BTreeSet, fmt::Write, fs, path::PathBuf};

use crate::{answer::Answer, case::VERSIONS, compare::differences, deliberate::Deliberate, ours, recorded::Suite};

pub(crate) const BEGIN: &str = "<!-- results -->\n";
pub(crate) const END: &str = "<!-- end of results -->";

pub(crate) fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/internals/parity.md")
}

pub(crate) fn read() -> String {
    fs::read_to_string(path()).unwrap_or_default()
}

/// The results of one release.
#[derive(Debug, Default)]
struct Results {
    by_hand: usize,
    generated: usize,
    refused: usize,
    differ: BTreeSet<String>,
}

impl Results {
    fn of(suite: &Suite, version: &str) -> Self {
        let mut results = Self::default();
        for (case, answers) in suite.cases() {
            let Some(sparks) = answers.and_then(|answers| answers.get(version)) else { continue };
            *(if case.is_generated() { &mut results.generated } else { &mut results.by_hand }) += 1;
            results.refused += usize::from(matches!(sparks, Answer::Refused(_)));
            if !differences(&ours::answer(case, version), sparks).is_empty() {
                results.differ.insert(case.name.clone());
            }
        }
        results
    }
}

/// Returns the part of the page between its marks.
pub(crate) fn results(suite: &Suite, deliberate: &Deliberate) -> String {
    let mut text = BEGIN.to_owned();
    text += "\n| Spark | by hand | generated | Spark refuses | the same | differ |\n|---|---|---|---|---|---|\n";
    let mut differ = BTreeSet::new();
    for version in VERSIONS {
        let Results { by_hand, generated, refused, differ: names } = Results::of(suite, version);
        let (all, other) = (by_hand + generated, names.len());
        let _ = writeln!(text, "| {version} | {by_hand} | {generated} | {refused} | {} | {other} |", all - other);
        differ.extend(names);
    }
    text += "\n";
    for (name, entry) in deliberate.entries() {
        let count = differ.iter().filter(|case| entry.is_about(case)).count();
        let releases = if entry.versions.len() == VERSIONS.len() { "all" } else { &entry.versions.join(", ") };
        let cases = if count == 1 { "case" } else { "cases" };
        let _ = writeln!(text, "- **{name}** ({count} {cases}; Spark {releases}): {}", entry.reason);
    }
    if deliberate.entries().next().is_none() {
        text += "No difference is meant to be there.\n";
    }
    text + "\n" + END
}
