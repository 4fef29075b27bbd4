//! The real spark-submit as oracle: what the last patch of each Spark line does with a request, compared with what is
//! built here. `docs/parity.md` tells how; `make parity` records Spark's answers.
//!
//! A `case` (written by hand, or drawn by `generate`) has two `answer`s: `ours`, and Spark's, which is `recorded`.
//! `compare` finds where they differ, and `deliberate` takes out what is meant to. `rules` checks single rules against
//! `vectors`. The other program made of these modules, `record.rs`, is `make parity`; only it has the `recorder`.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod answer;
mod case;
mod compare;
mod coverage;
mod deliberate;
mod generate;
mod ours;
mod page;
mod recorded;
mod rules;
mod vectors;

use std::{fs, sync::LazyLock};

use case::{Case, VERSIONS};
use compare::{Report, differences};
use deliberate::Deliberate;
use recorded::{Baseline, Suite};

static SUITE: LazyLock<Suite> = LazyLock::new(Suite::read);

/// Everything that was recorded for one release is what is built here.
fn assert_same(version: &str) {
    let suite = &*SUITE;
    let deliberate = Deliberate::read();
    let mut report = Report::default();
    let mut silent = Vec::new();
    for (case, answers) in suite.cases().filter(|(case, _)| case.is_for(version)) {
        let Some(sparks) = answers.and_then(|answers| answers.get(version)) else {
            silent.push(case.name.as_str());
            continue;
        };
        let found = differences(&ours::answer(case, version), sparks);
        report.add(&case.name, version, deliberate.unexpected(&case.name, version, found));
    }
    assert!(silent.is_empty(), "`make parity` has not recorded {} cases: {silent:?}", silent.len());
    assert!(report.is_empty(), "{report}");
}

#[test]
fn all_is_as_spark_3_5_does_it() {
    assert_same("3.5.9");
}

#[test]
fn all_is_as_spark_4_0_does_it() {
    assert_same("4.0.5");
}

#[test]
fn all_is_as_spark_4_1_does_it() {
    assert_same("4.1.4");
}

#[test]
fn all_is_as_spark_4_2_does_it() {
    assert_same("4.2.1");
}

#[test]
fn all_is_as_spark_4_3_does_it() {
    assert_same("4.3.0");
}

#[test]
fn the_minimal_driver_is_the_same() {
    let mut report = Report::default();
    for version in VERSIONS {
        let case = Case::minimal();
        report.add(
            "minimal",
            version,
            differences(&ours::answer(&case, version), &Baseline::read().answers()[version]),
        );
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn the_generator_still_draws_what_was_recorded() {
    let recorded = fs::read_to_string(recorded::path("fingerprint")).unwrap();
    let cases = &recorded::groups()["generated"];
    assert_eq!(generate::fingerprint(cases), recorded, "run `make parity` after a change of the generator");
}

#[test]
fn the_recorded_files_are_as_the_recorder_writes_them() {
    let suite = &*SUITE;
    let baseline = Baseline::read();
    assert_eq!(fs::read_to_string(recorded::path("minimal.txt")).unwrap(), baseline.text());
    for (group, cases) in &suite.groups {
        let file = format!("{group}.txt");
        let text = fs::read_to_string(recorded::path(&file)).unwrap_or_default();
        assert!(recorded::render(&suite.answers[group], cases, &baseline) == text, "{file} was edited, or is old");
    }
}

#[test]
fn there_are_enough_cases() {
    let suite = &*SUITE;
    for version in VERSIONS {
        let answered =
            suite.cases().filter(|(_, answers)| answers.is_some_and(|answers| answers.contains_key(version)));
        let (generated, by_hand): (Vec<&Case>, Vec<&Case>) =
            answered.map(|(case, _)| case).partition(|case| case.is_generated());
        assert!(
            by_hand.len() >= 200 && generated.len() >= 500,
            "Spark {version}: {}, {}",
            by_hand.len(),
            generated.len()
        );
    }
}

#[test]
fn each_deliberate_difference_is_there_and_on_the_page() {
    let suite = &*SUITE;
    let page = page::read();
    for (name, entry) in Deliberate::read().entries() {
        assert!(page.contains(&entry.reason), "docs/parity.md doesn't tell about {name}");
        let differs = |(case, answers): (&Case, Option<&recorded::ByVersion>), version: &String| {
            let sparks = answers.and_then(|answers| answers.get(version));
            sparks.is_some_and(|sparks| !differences(&ours::answer(case, version), sparks).is_empty())
        };
        for pattern in &entry.cases {
            let mut own = suite.cases().filter(|(case, _)| deliberate::matches(pattern, &case.name));
            let still = own.any(|case| entry.versions.iter().any(|version| differs(case, version)));
            assert!(still, "{name}: {pattern} no longer differs: take it off the list");
        }
        for version in &entry.versions {
            let mut own = suite.cases().filter(|(case, _)| entry.is_about(&case.name));
            assert!(own.any(|case| differs(case, version)), "{name} no longer differs from Spark {version}");
        }
    }
}

#[test]
fn the_page_tells_the_results() {
    let suite = &*SUITE;
    let results = page::results(suite, &Deliberate::read());
    assert!(page::read().contains(&results), "docs/parity.md is to hold (`make parity` writes it):\n{results}");
}
