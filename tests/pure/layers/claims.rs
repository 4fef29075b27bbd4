//! Claims of pages about the program, compared with it: the features in `docs/start/comparison.md`, which must neither deny one that is
//! there nor promise one that isn't, and the names of variables.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::layers::links::texts;

/// The evidence of a feature in the program.
#[derive(Clone, Copy)]
enum Evidence {
    /// A path of `openapi/sparkgate.json`.
    Endpoint(&'static str),
    /// A row of `docs/reference/settings.md`.
    Setting(&'static str),
    /// A file, for what is neither.
    File(&'static str),
}

use Evidence::{Endpoint, File, Setting};

/// A row of the table *Side by side*, a word that Sparkgate's cell has to have, and the evidence for it.
const CLAIMS: [(&str, &str, Evidence); 22] = [
    ("clients use", "Spark's REST protocol", Endpoint("/v1/submissions/create")),
    ("clients use", "Livy", Setting("SPARKGATE_LIVY_LISTEN")),
    ("clients use", "Kubeflow", File("docs/integrate/kubeflow.md")),
    ("clients use", "MCP", File("docs/integrate/mcp.md")),
    ("clients use", "Python", File("clients/python/pyproject.toml")),
    ("clients use", "Airflow", File("clients/airflow/pyproject.toml")),
    ("clients use", "Dagster", File("docs/integrate/dagster.md")),
    ("outcome after the pod is gone", "finalizer", Setting("SPARKGATE_OUTCOME_FINALIZER")),
    ("driver's log after the pod is gone", "object store", Setting("SPARKGATE_LOGS_URL")),
    ("state changes as a stream", "webhooks", Endpoint("/v1/webhooks")),
    ("state changes as a stream", "server-sent events", Endpoint("/v1/events")),
    ("authentication", "API keys", Endpoint("/v1/tokens")),
    ("authentication", "OIDC", Setting("SPARKGATE_ACCESS_FILE")),
    ("Spark versions", "side by side", Endpoint("/v1/spark-versions")),
    ("files from the client's disk", "uploaded", Endpoint("/v1/files/{sha256}")),
    ("metrics", "Prometheus", Setting("SPARKGATE_MANAGEMENT_LISTEN")),
    ("usage and cost", "core-hours", Endpoint("/v1/usage")),
    ("lineage", "OpenLineage", Setting("SPARKGATE_OPENLINEAGE_URL")),
    ("audit", "denied", Endpoint("/v1/audit")),
    ("fair queues of teams", "by weight", Endpoint("/v1/queues")),
    ("interactive sessions", "Spark Connect", Endpoint("/v1/sessions")),
    ("Helm chart", "yes", File("charts/sparkgate/Chart.yaml")),
];

/// Rows in which Sparkgate's cell has a dash, and the beginning of the paths that would belie it.
const DENIED: [(&str, &str); 1] = [("schedules", "/v1/schedules")];

struct Program {
    root: &'static Path,
    api: Value,
    settings: String,
}

impl Program {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = |file: &str| fs::read_to_string(root.join(file)).unwrap();
        let api = serde_json::from_str(&text("openapi/sparkgate.json")).unwrap();
        Self { root, api, settings: text("docs/reference/settings.md") }
    }

    fn has(&self, evidence: Evidence) -> bool {
        match evidence {
            Endpoint(path) => self.api["paths"].get(path).is_some(),
            Setting(name) => self.settings.contains(&format!("`{name}`")),
            File(path) => self.root.join(path).exists(),
        }
    }

    fn paths(&self) -> impl Iterator<Item = &String> {
        self.api["paths"].as_object().unwrap().keys()
    }
}

/// Returns Sparkgate's cell of a row, which is the last one.
fn cell<'a>(page: &'a str, row: &str) -> &'a str {
    let line = page.lines().find(|line| line.starts_with(&format!("| {row} |")));
    line.unwrap_or_else(|| panic!("no row {row}")).rsplit('|').nth(1).unwrap().trim()
}

#[test]
fn the_comparison_says_what_the_program_has() {
    let program = Program::read();
    let page = fs::read_to_string(program.root.join("docs/start/comparison.md")).unwrap();
    for (row, word, evidence) in CLAIMS {
        let cell = cell(&page, row);
        assert_eq!(cell.contains(word), program.has(evidence), "{row}: {cell}");
    }
    for (row, start) in DENIED {
        let is_there = program.paths().any(|path| path.starts_with(start));
        assert_eq!(cell(&page, row).contains('–'), !is_there, "{row}");
    }
    let text = page.to_lowercase();
    for denial in ["no metrics", "no console", "no webhooks"] {
        assert!(!text.contains(denial), "{denial}");
    }
}

/// Returns the names of Sparkgate's variables in a text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.match_indices("SPARKGATE_").map(move |(at, _)| {
        let rest = &text[at..];
        rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())].trim_end_matches('_')
    })
}

#[test]
fn every_variable_that_a_page_names_is_read_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    texts(root, &mut files);
    let (mut read, mut named) = (BTreeSet::new(), BTreeSet::new());
    for path in files {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let into = if path.extension().is_some_and(|end| end == "md") { &mut named } else { &mut read };
        into.extend(variables(&text).map(str::to_owned));
    }
    let stale: Vec<_> = named.difference(&read).collect();
    assert!(named.len() > 60, "only {} found", named.len());
    assert!(stale.is_empty(), "no code reads {stale:?}");
}
