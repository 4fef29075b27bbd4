//! Checks that the tests and files that documents name exist.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The layer that is a folder of the root package; the others are crates.
const FOLDER: &str = "app";
const KUEUE: &str = "docs/operate/kueue.md";

/// Returns the documents whose claims name tests and files: the map, the rules, the guarantees, Kueue, and the pages of the internals.
fn documents(root: &Path) -> Vec<PathBuf> {
    let pages = fs::read_dir(root.join("docs/internals")).unwrap().map(|entry| entry.unwrap().path());
    let others = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/operate/reliability.md", KUEUE];
    pages.chain(others.map(|page| root.join(page))).collect()
}

/// Returns the texts between backticks, outside fenced blocks.
fn quoted(text: &str) -> Vec<&str> {
    let plain = text.split("```").step_by(2);
    plain.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_test_that_a_document_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = 0;
    for path in documents(root) {
        let (document, text) = (path.display(), fs::read_to_string(&path).unwrap());
        for reference in quoted(&text).into_iter().filter(|part| part.contains(".rs::")) {
            let (file, test) = reference.split_once("::").unwrap();
            let code = fs::read_to_string(root.join(file)).unwrap_or_else(|_| panic!("{document}: there is no {file}"));
            assert!(code.contains(&format!("fn {test}(")), "{document}: {file} has no test {test}");
            named += 1;
        }
    }
    assert!(named >= 100, "only {named} found: is the pattern still correct?");
}

/// Each situation that was tried with Kueue is a row of its page.
#[test]
fn the_page_of_kueue_has_a_row_for_each_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join(KUEUE)).unwrap();
    let mut missing = Vec::new();
    for part in ["admission", "eviction", "pods", "room"] {
        let name = format!("tests/kueue/{part}.rs");
        let code = fs::read_to_string(root.join(&name)).unwrap();
        let tests = code.split("#[sqlx::test]\nasync fn ").skip(1).map(|rest| rest.split('(').next().unwrap());
        let rows: Vec<_> = tests.map(|test| format!("| `{name}::{test}` |")).collect();
        assert!(rows.len() > 1, "{name}: is the pattern still correct?");
        missing.extend(rows.into_iter().filter(|row| !page.contains(row)));
    }
    assert!(missing.is_empty(), "{KUEUE} has no row that ends with {missing:?}");
}

/// The map and the internals leave out what the table of the layers says: `store/claim.rs` is `crates/store/src/claim.rs`.
fn exists(root: &Path, name: &str) -> bool {
    let (layer, rest) = name.split_once('/').unwrap_or((name, ""));
    let inside = if layer == FOLDER { format!("src/{name}") } else { format!("crates/{layer}/src/{rest}") };
    root.join(name).exists() || root.join(inside).exists()
}

#[test]
fn every_file_that_the_map_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut named, mut missing) = (0, Vec::new());
    for path in documents(root) {
        let text = fs::read_to_string(&path).unwrap();
        let is_path = |part: &&str| {
            let plain = part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
            plain && part.contains('/') && !part.starts_with('/') && (part.ends_with(".rs") || part.ends_with('/'))
        };
        for name in quoted(&text).into_iter().filter(is_path) {
            named += 1;
            if !exists(root, name) {
                missing.push(format!("{}: {name}", path.strip_prefix(root).unwrap().display()));
            }
        }
    }
    assert!(named > 200, "only {named} found: is the pattern still correct?");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
