//! Compares the log lines of `sparkgate serve` with the page that documents them: operators search for these words, and programs
//! read these fields.

use std::{collections::BTreeMap, path::Path};

use crate::layers::{source_folders, sources};

const PAGE: &str = include_str!("../../../docs/reference/logs.md");
/// Files of other commands than `serve`.
const OTHERS: [&str; 8] = [
    "src/app/adopt_cluster.rs",
    "src/app/run.rs",
    "src/app/dev.rs",
    "src/app/dev/",
    "src/app/release_finalizers.rs",
    "src/app/sandbox.rs",
    "crates/cluster/src/release.rs",
    "crates/sandbox/",
];
const LEVELS: [&str; 3] = ["error", "warn", "info"];

/// A line: its level and words, with `…` for each value.
type Line = (String, String);

#[test]
fn every_log_line_is_documented_with_its_fields() {
    let mut lines: BTreeMap<Line, Vec<String>> = BTreeMap::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    source_folders(root).iter().for_each(|folder| sources(folder, &mut files));
    for file in files {
        let path = file.strip_prefix(root).unwrap().to_str().unwrap();
        if OTHERS.iter().any(|other| path.starts_with(other)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for level in LEVELS {
            for call in calls(&text, &format!("tracing::{level}!(")) {
                let (fields, words) = parts(call);
                let words = words.unwrap_or_else(|| panic!("{path}: a line without words: {call}"));
                let documented = lines.entry((level.to_owned(), words)).or_default();
                documented.extend(fields);
                documented.sort();
                documented.dedup();
            }
        }
    }
    assert!(lines.len() > 80, "the calls are found: {}", lines.len());
    let page: BTreeMap<Line, Vec<String>> = PAGE.lines().filter_map(row).collect();
    let missing: Vec<_> = lines.iter().filter(|line| page.get(line.0) != Some(line.1)).collect();
    let stale: Vec<_> = page.iter().filter(|row| !lines.contains_key(row.0)).collect();
    assert!(missing.is_empty() && stale.is_empty(), "docs/reference/logs.md lacks {missing:#?}\nand has {stale:#?}");
}

/// Reads a row of a table of lines: words, level, fields, meaning.
fn row(line: &str) -> Option<(Line, Vec<String>)> {
    let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
    let [words, level, fields, _] = cells.as_slice() else { return None };
    let mut fields: Vec<String> =
        fields.split(", ").map(|name| name.trim_matches('`').to_owned()).filter(|name| !name.is_empty()).collect();
    fields.sort();
    LEVELS.contains(level).then(|| (((*level).to_owned(), words.trim_end_matches('`').to_owned()), fields))
}

/// Returns the arguments of each call of a macro.
fn calls<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.match_indices(name)
        .map(|(at, _)| {
            let arguments = &text[at + name.len()..];
            let end = depths(arguments).find(|(_, depth, _)| *depth < 0).map_or(arguments.len(), |(at, ..)| at);
            &arguments[..end]
        })
        .collect()
}

/// Returns each character with its place, the depth of brackets around it, and whether it is part of a string literal.
fn depths(text: &str) -> impl Iterator<Item = (usize, i32, Option<char>)> {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    text.char_indices().map(move |(at, char)| {
        match char {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '(' | '[' | '{' if !in_string => depth += 1,
            ')' | ']' | '}' if !in_string => depth -= 1,
            _ => {}
        }
        (at, depth, (!in_string && char != '"').then_some(char))
    })
}

/// Returns the names of the fields of a call, and its words.
fn parts(call: &str) -> (Vec<String>, Option<String>) {
    let commas = depths(call).filter(|(_, depth, char)| *depth == 0 && *char == Some(',')).map(|(at, ..)| at);
    let (mut arguments, mut from) = (Vec::new(), 0);
    for at in commas.chain([call.len()]) {
        arguments.push(call[from..at].trim());
        from = (at + 1).min(call.len());
    }
    let at = arguments.iter().position(|argument| argument.starts_with('"'));
    let words = at.map(|at| words(arguments[at]));
    let fields = arguments.iter().take(at.unwrap_or_default()).map(|argument| {
        let name = argument.split('=').next().unwrap_or_default().trim();
        name.trim_start_matches(['%', '?']).to_owned()
    });
    (fields.collect(), words)
}

/// Returns the words of a literal, with `…` for each value.
fn words(literal: &str) -> String {
    let literal = literal.trim_matches('"').split("\\\n").map(str::trim_start).collect::<Vec<_>>().concat();
    let mut words = String::new();
    for (nth, part) in literal.split('{').enumerate() {
        match part.split_once('}') {
            Some((_, rest)) if nth > 0 => words += &format!("…{rest}"),
            _ => words += part,
        }
    }
    words
}
