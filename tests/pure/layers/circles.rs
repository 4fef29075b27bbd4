//! Checks that the files of the service and of each crate import each other in one direction only.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::layers::{
    paths::named_paths,
    rules::{from_root, module_of},
};

/// Returns the files that take part in a circle of imports, or import from one.
fn in_circles(texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut left: BTreeMap<&str, BTreeSet<String>> =
        texts.iter().map(|(module, text)| (module.as_str(), imports(module, text, texts))).collect();
    loop {
        let modules: BTreeSet<String> = left.keys().map(|module| (*module).to_owned()).collect();
        left.retain(|_, imports| !imports.is_disjoint(&modules));
        if left.len() == modules.len() {
            return modules.into_iter().collect();
        }
    }
}

/// Returns the files that a file imports from.
fn imports(module: &str, text: &str, texts: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for named in named_paths(text.parse().unwrap()) {
        let Some(path) = from_root(module, &named) else { continue };
        // The longest prefix that is a file; the rest names an item in it.
        let prefixes = (1..=path.len()).rev().map(|length| (length, path[..length].join("/")));
        let Some((length, file)) = prefixes.into_iter().find(|(_, file)| texts.contains_key(file)) else { continue };
        // `pub(in crate::keeper)` names a folder and imports nothing.
        let is_visibility = length == path.len() && module.starts_with(&format!("{file}/"));
        if file != module && !is_visibility {
            found.insert(file);
        }
    }
    found
}

#[test]
fn files_import_each_other_without_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let module = |file: &PathBuf| module_of(file.strip_prefix(root).unwrap().to_str().unwrap());
    let (mut checked, mut circles) = (0, Vec::new());
    for folder in crate::layers::source_folders(root) {
        let mut files = Vec::new();
        crate::layers::sources(&folder, &mut files);
        let texts: BTreeMap<_, _> =
            files.iter().map(|file| (module(file), std::fs::read_to_string(file).unwrap())).collect();
        checked += texts.len();
        circles.extend(in_circles(&texts));
    }
    assert_eq!(circles, Vec::<String>::new());
    assert!(checked > 300, "only {checked} files found");
}

#[test]
fn a_circle_is_detected() {
    let circle = |first: &str, second: &str| {
        let texts = [("a", "mod b; mod c; pub struct A;"), ("a/b", first), ("a/c", second)];
        in_circles(&texts.map(|(module, text)| (module.to_owned(), text.to_owned())).into())
    };
    assert_eq!(circle("use super::A;", "use crate::{A, b::B};"), Vec::<String>::new());
    assert_eq!(circle("pub(in crate::c) struct B;", "pub(super) fn c() {}"), Vec::<String>::new());
    assert_eq!(circle("use super::c::C;", "use crate::b;"), ["a/b", "a/c"]);
    assert_eq!(circle("use super::{A, c::C};", "fn c(_: super::b::B) {}"), ["a/b", "a/c"]);
}
