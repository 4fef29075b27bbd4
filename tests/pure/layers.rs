//! Checks what Cargo can't say of the layers of `ARCHITECTURE.md`: that a crate depends only on layers below it in the table there,
//! where the program may use kube and axum, that files import each other without a circle, and how long a file may be. Comments,
//! strings and unit tests don't count.

mod arrows;
mod circles;
mod claims;
mod links;
mod log_lines;
mod named;
mod paths;
mod rules;
mod setup;

use std::path::{Path, PathBuf};

use rules::violations;

/// Collects all Rust files below `folder`, except unit tests in files of their own.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            into.push(path);
        }
    }
}

/// Returns the folder of the service's sources and those of the crates.
fn source_folders(root: &Path) -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    crates.chain([root.join("src")]).collect()
}

#[test]
fn every_file_keeps_to_its_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in source_folders(root) {
        sources(&folder, &mut files);
    }
    assert!(files.len() > 300, "only {} files found", files.len());
    let mut found = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap();
        found.extend(violations(name, &std::fs::read_to_string(file).unwrap()));
    }
    found.sort();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the violations without the path.
fn at_fault(path: &str, text: &str) -> Vec<String> {
    let prefix = format!("{path}:");
    violations(path, text).iter().map(|line| line.strip_prefix(&prefix).unwrap().to_owned()).collect()
}

#[test]
fn comments_strings_and_unit_tests_do_not_count() {
    let text = "//! See crate::api and sqlx::query.\n/* use crate::app; */\nconst A: &str = \"kube::Client\";\n\
                #[cfg(test)]\nmod tests { use crate::store::Store; use axum::Router; }\n\
                #[cfg(test)]\nuse crate::service::Service;\nuse chrono::Utc;";
    assert_eq!(at_fault("crates/spark/src/driver.rs", text), Vec::<String>::new());
}

#[test]
fn a_library_is_used_only_in_its_folder() {
    let text = "use kube::{Api, Client};\nfn f() -> axum::Router { todo() }";
    assert_eq!(
        at_fault("src/app/doctor.rs", text),
        ["1: only app/sandbox may use `kube`", "2: only app/serve may use `axum`"]
    );
    assert_eq!(at_fault("src/app/serve/listener.rs", "use axum::Router;"), Vec::<String>::new());
    assert_eq!(
        at_fault("src/app/server.rs", "use axum::Router;").len(),
        1,
        "only the beginning of the name is the same"
    );
    assert_eq!(at_fault("crates/cluster/src/pods.rs", text), Vec::<String>::new(), "Cargo.toml says what a crate uses");
}

#[test]
fn the_parts_of_the_sandbox_import_no_other_part() {
    for text in ["use crate::apiserver::Server;", "use super::super::apiserver::Server;"] {
        assert_eq!(
            at_fault("crates/sandbox/src/node/worker.rs", text),
            ["1: `sandbox/node` may not import `sandbox/apiserver`: they communicate only through the Kubernetes API"]
        );
    }
    assert_eq!(at_fault("crates/sandbox/src/lib.rs", "use crate::apiserver::Server;"), Vec::<String>::new());
}

#[test]
fn a_long_or_unreadable_file_is_a_violation() {
    assert_eq!(at_fault("src/app.rs", &"// a line\n".repeat(600)), Vec::<String>::new());
    assert_eq!(at_fault("src/app.rs", &"// a line\n".repeat(601)), ["601: a file has at most 600 lines: split it"]);
    assert_eq!(at_fault("src/app.rs", "fn (").len(), 1);
}
