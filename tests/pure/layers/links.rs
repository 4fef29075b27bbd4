//! Every link of a page leads to a file and a heading that exist, and every page that code, charts and scripts name is there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Folders that aren't part of the source, by name.
const SKIPPED: [&str; 6] = ["target", ".git", "node_modules", ".venv", "corpus", "artifacts"];
/// The ends of the names of files that may name a page.
const ENDS: [&str; 9] = ["rs", "md", "py", "yaml", "yml", "json", "toml", "txt", "html"];

/// Collects the text files below `folder`, also those without an extension.
pub(crate) fn texts(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !SKIPPED.contains(&name) && !path.is_symlink() {
                texts(&path, into);
            }
        } else if path.extension().is_none_or(|end| ENDS.contains(&end.to_str().unwrap())) {
            into.push(path);
        }
    }
}

/// Returns the lines outside fenced blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Returns the targets of the links in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Returns the anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    let mut found = BTreeSet::new();
    for heading in headings {
        let mut text = heading.trim_start_matches('#').trim().to_lowercase();
        while let Some((before, link)) = text.split_once("](") {
            text = before.replacen('[', "", 1) + link.split_once(')').unwrap().1;
        }
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        found.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    found
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    texts(root, &mut files);
    let (mut links, mut broken) = (0, Vec::new());
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let page = fs::read_to_string(path).unwrap();
        for target in
            prose(&page).flat_map(targets).filter(|target| !target.contains("://") && !target.starts_with('<'))
        {
            let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
            let to = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let has_anchor = |anchor: &str| fs::read_to_string(&to).is_ok_and(|text| anchors(&text).contains(anchor));
            if !to.exists() || !anchor.is_none_or(has_anchor) {
                broken.push(format!("{}: {target}", path.strip_prefix(root).unwrap().display()));
            }
            links += 1;
        }
    }
    assert!(links > 300, "only {links} links found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_that_a_file_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    texts(root, &mut files);
    let (mut named, mut missing) = (0, Vec::new());
    for path in files {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let relative = path.strip_prefix(root).unwrap();
        for (before, rest) in text.match_indices("docs/").map(|(at, _)| (&text[..at], &text[at..])) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '/' | '.' | '-' | '_'));
            let name = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
            // Other sites have pages below `docs/`, too.
            let other = before.trim_end_matches("../").ends_with(|c: char| c.is_alphanumeric() || c == '/' || c == '-');
            if !name.ends_with(".md") || other {
                continue;
            }
            if !root.join(name).exists() {
                missing.push(format!("{}: {name}", relative.display()));
            }
            named += 1;
        }
    }
    assert!(named > 100, "only {named} found");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_pages_for_strangers_stay_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (page, limit) in [("README.md", 150), ("ARCHITECTURE.md", 250)] {
        let lines = fs::read_to_string(root.join(page)).unwrap().lines().count();
        assert!(
            lines <= limit,
            "{page} has {lines} lines, and {limit} at most: move what only some readers need to docs/"
        );
    }
}
