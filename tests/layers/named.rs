//! Checks that the tests that documents name exist.

use std::{fs, path::Path};

/// The documents whose claims name tests.
const DOCUMENTS: [&str; 2] = ["ARCHITECTURE.md", "docs/operate/reliability.md"];

#[test]
fn every_test_that_a_document_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = 0;
    for document in DOCUMENTS {
        let text = fs::read_to_string(root.join(document)).unwrap();
        for reference in text.split('`').filter(|part| part.contains(".rs::")) {
            let (file, test) = reference.split_once("::").unwrap();
            let code = fs::read_to_string(root.join(file)).unwrap_or_else(|_| panic!("{document}: there is no {file}"));
            assert!(code.contains(&format!("fn {test}(")), "{document}: {file} has no test {test}");
            named += 1;
        }
    }
    assert!(named >= 20, "only {named} found: is the pattern still correct?");
}
