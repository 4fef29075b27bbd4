//! Deliberate differences: `differences.json`.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;

use crate::compare::Difference;

/// By a short name for each.
pub(crate) struct Deliberate(BTreeMap<String, Entry>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Names of cases; `*` matches any text.
    pub(crate) cases: Vec<String>,
    pub(crate) versions: Vec<String>,
    /// Paths of the differing leaves; `*` matches any text; `refusal` if one side refuses.
    leaves: Vec<String>,
    /// A sentence for the page.
    pub(crate) reason: String,
}

impl Deliberate {
    pub(crate) fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/differences.json");
        Self(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.0.iter()
    }

    /// Returns the differences that aren't deliberate.
    pub(crate) fn unexpected(&self, case: &str, version: &str, mut found: Vec<Difference>) -> Vec<Difference> {
        for entry in self.0.values() {
            if entry.is_about(case) && entry.versions.iter().any(|own| own == version) {
                found.retain(|difference| !entry.leaves.iter().any(|leaf| matches(leaf, &difference.path)));
            }
        }
        found
    }
}

impl Entry {
    pub(crate) fn is_about(&self, case: &str) -> bool {
        self.cases.iter().any(|pattern| matches(pattern, case))
    }
}

pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(rest, &text[at..]))
        }),
    }
}
