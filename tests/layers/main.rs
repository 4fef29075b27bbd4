//! Checks the layers of `ARCHITECTURE.md`: which folder of `src/` may import which, where sqlx, kube and axum may be
//! used, and how long a file may be. Comments, strings and unit tests don't count.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod circles;
mod named;
mod paths;
mod rules;

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

#[test]
fn every_file_keeps_to_its_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 50, "only {} files found", files.len());
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
fn an_import_of_a_layer_above_is_refused() {
    let text = "use crate::spark::Refusal;\nuse crate::{\n    submission::State,\n    service::{Service, Error},\n};\n\
                fn f() { crate::app::run(); }";
    assert_eq!(
        at_fault("src/store/query.rs", text),
        [
            "4: `store` may not import `service`: store → submission, spark",
            "6: `store` may not import `app`: store → submission, spark"
        ]
    );
    assert_eq!(at_fault("src/app/serve.rs", text), Vec::<String>::new());
}

#[test]
fn an_import_through_super_is_detected() {
    let text = "use super::{driver, super::store::Store};\nuse super::super::cluster;\n\
                mod inner { use super::super::super::api; }";
    assert_eq!(
        at_fault("src/spark/features.rs", text),
        [
            "1: `spark` may not import `store`: spark → no other layer",
            "2: `spark` may not import `cluster`: spark → no other layer",
            "3: `spark` may not import `api`: spark → no other layer",
        ]
    );
    assert_eq!(
        at_fault("src/spark/features/basic.rs", text),
        Vec::<String>::new(),
        "a folder deeper they stay in spark"
    );
}

#[test]
fn comments_strings_and_unit_tests_do_not_count() {
    let text = "//! See crate::api and sqlx::query.\n/* use crate::app; */\nconst A: &str = \"kube::Client\";\n\
                #[cfg(test)]\nmod tests { use crate::store::Store; use axum::Router; }\n\
                #[cfg(test)]\nuse crate::service::Service;\nuse chrono::Utc;";
    assert_eq!(at_fault("src/spark/driver.rs", text), Vec::<String>::new());
}

#[test]
fn a_library_is_used_only_in_its_layer() {
    let text = "use sqlx::PgPool;\nuse kube::{Api, Client};\nfn f() -> axum::Router { todo() }\n#[derive(sqlx::FromRow)]\nstruct R;";
    assert_eq!(
        at_fault("src/service/create.rs", text),
        [
            "1: only store may use `sqlx`",
            "2: only cluster, sandbox/node, app/sandbox may use `kube`",
            "3: only api, sandbox/apiserver, sandbox/node, app/serve may use `axum`",
            "4: only store may use `sqlx`",
        ]
    );
    assert_eq!(at_fault("src/store/query.rs", "use sqlx::PgPool;"), Vec::<String>::new());
    assert_eq!(at_fault("src/store.rs", "use sqlx::PgPool;"), Vec::<String>::new());
    assert_eq!(
        at_fault("src/storefront.rs", "use sqlx::PgPool;").len(),
        1,
        "only the beginning of the name is the same"
    );
}

#[test]
fn the_client_imports_no_layer_of_the_gateway() {
    let text = "use crate::{service::Service, spark::parse_properties, submission::State};";
    assert_eq!(
        at_fault("src/client/api.rs", text),
        ["1: `client` may not import `service`: client → spark, submission"]
    );
    assert_eq!(at_fault("src/api.rs", "use crate::client::ClientCommand;").len(), 1);
}

#[test]
fn the_parts_of_the_sandbox_import_no_other_part() {
    let text = "use crate::sandbox::apiserver::Server;";
    assert_eq!(
        at_fault("src/sandbox/node/worker.rs", text),
        ["1: `sandbox/node` may not import `sandbox/apiserver`: they communicate only through the Kubernetes API"]
    );
    assert_eq!(at_fault("src/sandbox.rs", text), Vec::<String>::new());
}

#[test]
fn a_long_or_unreadable_file_is_a_violation() {
    assert_eq!(at_fault("src/api.rs", &"// a line\n".repeat(600)), Vec::<String>::new());
    assert_eq!(at_fault("src/api.rs", &"// a line\n".repeat(601)), ["601: a file has at most 600 lines: split it"]);
    assert_eq!(at_fault("src/api.rs", "fn (").len(), 1);
}
