//! The statements in the source of the store that take the first rows, or the largest or smallest value.

use std::{fmt, fs, path::Path};

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fragment {
    file: String,
    line: usize,
    pub(super) text: String,
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Files, or fragments in them, that no loop runs.
const NOT_OF_LOOPS: &[(&str, &str)] = &[
    // Requests of users, and pages of the console.
    ("accept/bounds.rs", "AND tenant = $1 LIMIT"),
    ("api_keys.rs", ""),
    ("browser_sessions.rs", ""),
    ("connect_sessions.rs", "ORDER BY number DESC LIMIT"),
    ("document.rs", ""),
    ("events.rs", "ORDER BY e.sequence, e.id LIMIT"),
    ("executors.rs", ""),
    ("file_list.rs", ""),
    ("grouped_reads.rs", ""),
    ("jobs.rs", ""),
    ("kill.rs", "count(*), max(number)"),
    ("livy.rs", ""),
    ("overview.rs", ""),
    ("queues/hold.rs", "max(number) FROM moved"),
    ("queues/requeue.rs", "LIMIT (SELECT places FROM room)"),
    ("queues/standing.rs", ""),
    ("submissions/list.rs", ""),
    ("spark_summaries.rs", "ORDER BY s.number DESC LIMIT"),
    ("starts.rs", "ORDER BY s.number DESC LIMIT"),
    ("usage.rs", "(max(core_hour)"),
    ("usage.rs", "(max(gib_hour)"),
    ("webhooks.rs", ""),
    ("webhooks/deliveries.rs", "ORDER BY id DESC LIMIT"),
    // Commands of operators.
    ("inspect.rs", ""),
    ("installation.rs", ""),
    // A retry reads the attempts of its own submission.
    ("attempts.rs", "WHERE submission_id = $1 AND attempt < $2"),
];

/// Returns what loops run.
pub(super) fn of_loops() -> Vec<Fragment> {
    let mut fragments = all();
    fragments.retain(|fragment| !NOT_OF_LOOPS.iter().any(|exception| is_of(fragment, *exception)));
    assert!(fragments.len() > 10, "{fragments:?}");
    fragments
}

/// Returns the exceptions that have no statement any more.
pub(super) fn stale_exceptions() -> Vec<String> {
    let all = all();
    let stale = NOT_OF_LOOPS.iter().filter(|exception| !all.iter().any(|fragment| is_of(fragment, **exception)));
    stale.map(|(file, text)| format!("{file}: {text}")).collect()
}

fn is_of(fragment: &Fragment, (file, text): (&str, &str)) -> bool {
    fragment.file == file && fragment.text.contains(text)
}

fn all() -> Vec<Fragment> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/store/src");
    let mut fragments = Vec::new();
    read(&root, &root, &mut fragments);
    fragments.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    fragments
}

fn read(root: &Path, folder: &Path, fragments: &mut Vec<Fragment>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(root, &path, fragments);
            continue;
        }
        let file = path.strip_prefix(root).unwrap().display().to_string();
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let texts = pieces(line).map(|text| Fragment { file: file.clone(), line: number + 1, text });
            fragments.extend(texts);
        }
    }
}

/// Returns the pieces of a line, between quotation marks and what is inserted, that belong to the class.
fn pieces(line: &str) -> impl Iterator<Item = String> {
    let line = line.trim();
    let code = if line.starts_with("//") { "" } else { line };
    code.split(['"', '{', '}', '\\']).filter(|piece| is_of_class(piece)).map(spaced)
}

fn is_of_class(piece: &str) -> bool {
    let takes_first = piece.split_whitespace().any(|word| word == "LIMIT");
    let extreme = ["max(", "min("].iter().any(|function| {
        piece.match_indices(function).any(|(at, _)| {
            let before = piece[..at].chars().next_back();
            before.is_none_or(|before| before == ' ' || before == '(')
        })
    });
    takes_first || extreme
}

/// Returns a text with one space for each white space.
pub(super) fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
