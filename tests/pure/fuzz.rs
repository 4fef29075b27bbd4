//! The targets of `fuzz/` on their corpora and on mutations of them, without libFuzzer. `make fuzz` runs them for longer.

mod mutate;
#[expect(unreachable_pub, reason = "shared with the programs of fuzz/")]
mod targets;

use std::{
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use mutate::Mutations;
use targets::{
    api::{cursor, query, request},
    callers::{access, certificate, identity, jwt, key_set, pattern},
    drivers::{driver, policy, template},
    requests::{command_line, path, properties, spark_request},
};

/// Mutations of a target's corpus in one run.
const MUTATIONS: usize = 3_000;
/// The same for targets that build drivers, which take a hundred times as long.
const MUTATIONS_OF_DRIVERS: usize = 300;
const OF_DRIVERS: [&str; 3] = ["driver", "policy", "template"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// Returns the kept inputs of a target, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = folder().join("corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no input", folder.display());
    files.iter().map(|file| fs::read(file).expect("a readable file")).collect()
}

/// Runs a target on its corpus, and on mutations from a seed.
fn replay(target: &str, run: fn(&[u8]), seed: u64) {
    let corpus = corpus(target);
    let count = if OF_DRIVERS.contains(&target) { MUTATIONS_OF_DRIVERS } else { MUTATIONS };
    let mutations = Mutations::new(&corpus, seed).take(count);
    for input in corpus.iter().cloned().chain(mutations) {
        let done = catch_unwind(|| run(&input));
        assert!(done.is_ok(), "target {target}, seed {seed}: a finding for the input b\"{}\"", input.escape_ascii());
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        mod mutations {
            $(
                #[test]
                fn $name() {
                    super::replay(stringify!($name), super::$name, 1);
                }
            )*
        }

        const TARGETS: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    access certificate command_line cursor driver identity jwt key_set path pattern policy properties query request
    spark_request template
}

#[test]
fn each_target_has_a_program_and_a_test() {
    let programs = fs::read_dir(folder().join("fuzz_targets")).unwrap();
    let mut programs: Vec<PathBuf> = programs.map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    let names: Vec<_> = programs.iter().map(|program| program.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, TARGETS);
}
