//! `make parity`: runs the real spark-submits, and records their answers.
#![expect(clippy::unwrap_used, reason = "a tool for developers, which shares its parts with a test")]

mod answer;
mod case;
mod compare;
mod deliberate;
mod generate;
mod new_line;
mod ours;
mod page;
mod recorded;
mod recorder;
mod vectors;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::{
    case::{Case, VERSIONS},
    compare::{Report, differences},
    deliberate::Deliberate,
    new_line::Changes,
    recorded::{Answers, Baseline, Suite},
    recorder::{Keep, Spark},
};

/// Records the answers of the real spark-submits to all cases again, unless an option says otherwise.
#[derive(Debug, Parser)]
#[command(name = "scripts/parity")]
struct Options {
    /// Only this release (may be repeated).
    #[arg(long = "spark", value_name = "VERSION")]
    versions: Vec<String>,
    /// Compare the cases whose names contain this text, and record nothing.
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Compare this many new random cases, show differing ones reduced to a minimum, and record nothing.
    #[arg(long, value_name = "N")]
    generate: Option<usize>,
    /// Record this many generated cases from now on, instead of the current number.
    #[arg(long, value_name = "N", conflicts_with_all = ["case", "generate", "check_oracle"])]
    record: Option<usize>,
    /// The seed of the random cases.
    #[arg(long, default_value_t = generate::SEED + 1)]
    seed: u64,
    /// Run this many cases both in process and as a process, and compare.
    #[arg(long, value_name = "N")]
    check_oracle: Option<usize>,
    /// Compare the answers of this release, which no line of Sparkgate has yet, with those of the release `--beside`, and record nothing.
    #[arg(long, value_name = "VERSION", requires = "beside", conflicts_with_all = ["case", "generate", "record", "check_oracle"])]
    new: Option<String>,
    /// The release of the line before.
    #[arg(long, value_name = "VERSION")]
    beside: Option<String>,
    /// The directory of the new release, with its `jars/`, such as an unpacked release candidate. Without it, the release is downloaded.
    #[arg(long, value_name = "DIR", requires = "new")]
    home: Option<PathBuf>,
    /// Reuse answers of an earlier run if the input is the same.
    #[arg(long)]
    reuse: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let versions: Vec<String> = match &options.versions[..] {
        [] => VERSIONS.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    let unknown = versions.iter().find(|version| !VERSIONS.contains(&version.as_str()));
    ensure!(unknown.is_none(), "the releases are {}", VERSIONS.join(", "));
    fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/target/parity"))?;
    let mut groups = recorded::groups();
    if let Some(count) = options.record {
        groups.insert("generated".into(), generate::cases(generate::SEED, count));
    }
    let all: Vec<&Case> = groups.values().flatten().collect();
    match &options {
        Options { new: Some(new), beside: Some(known), home, .. } => {
            println!("{}", changes(new, known, home.as_deref())?);
            Ok(())
        }
        Options { check_oracle: Some(count), .. } => recorder::check(&versions, &all, *count),
        Options { generate: Some(count), seed, .. } => compare_new(&versions, &generate::cases(*seed, *count)),
        Options { case: Some(part), reuse, .. } => {
            let some: Vec<&Case> = all.into_iter().filter(|case| case.name.contains(part.as_str())).collect();
            let keep = if *reuse { Keep::All } else { Keep::Nothing };
            println!("{}", report(&some, &recorder::ask(&versions, &some, keep)?));
            Ok(())
        }
        _ => record(&groups, &versions, if options.reuse { Keep::All } else { Keep::Fresh }),
    }
}

/// Compares the answers of a new release with the recorded ones of a known one. Those of the new one are recorded, too, if it was new once.
fn changes(new: &str, known: &str, home: Option<&Path>) -> Result<Changes> {
    ensure!(VERSIONS.contains(&known), "the releases are {}", VERSIONS.join(", "));
    let suite = Suite::read();
    let mut spark = match VERSIONS.contains(&new) && home.is_none() {
        true => None,
        false => Some(Spark::start_in(new, home)?),
    };
    let mut changes = Changes::new(known, new);
    for (case, answers) in suite.cases().filter(|(case, _)| case.is_for(known)) {
        let Some(before) = answers.and_then(|answers| answers.get(known)) else { continue };
        match &mut spark {
            Some(spark) => match spark.answer(case) {
                Ok(answer) => changes.add(case, before, &answer),
                Err(error) => eprintln!("no answer: {error:#}"),
            },
            None => {
                if let Some(after) = answers.and_then(|answers| answers.get(new)) {
                    changes.add(case, before, after);
                }
            }
        }
    }
    Ok(changes)
}

fn report(cases: &[&Case], answers: &Answers) -> Report {
    let mut report = Report::default();
    let deliberate = Deliberate::read();
    for case in cases {
        for (version, sparks) in answers.get(&case.name).into_iter().flatten() {
            let found = differences(&ours::answer(case, version), sparks);
            report.add(&case.name, version, deliberate.unexpected(&case.name, version, found));
        }
    }
    report
}

fn record(groups: &BTreeMap<String, Vec<Case>>, versions: &[String], keep: Keep) -> Result<()> {
    let minimal = Case::minimal();
    let cases: Vec<&Case> = groups.values().flatten().chain([&minimal]).collect();
    let mut answers = recorder::ask(versions, &cases, keep)?;
    // The other releases keep their recorded answers.
    let old = Baseline::read();
    let mut minimals = old.answers();
    minimals.extend(answers.remove("minimal").unwrap_or_default());
    let new = Baseline::new(minimals);
    fs::create_dir_all(recorded::path(""))?;
    fs::write(recorded::path("minimal.txt"), new.text())?;
    for (group, cases) in groups {
        let file = format!("{group}.txt");
        let known = recorded::read(&file, cases, &old);
        let mut of_group = Answers::new();
        for case in cases {
            let mut of_case = known.get(&case.name).cloned().unwrap_or_default();
            of_case.retain(|version, _| !versions.contains(version) && case.is_for(version));
            of_case.extend(answers.remove(&case.name).unwrap_or_default());
            of_group.insert(case.name.clone(), of_case);
        }
        fs::write(recorded::path(&file), recorded::render(&of_group, cases, &new))?;
    }
    fs::write(recorded::path("fingerprint"), generate::fingerprint(&groups["generated"]))?;
    let (keys, vectors) = recorder::record_vectors(&VERSIONS)?;
    fs::write(recorded::path("keys.json"), lines(&keys)?)?;
    fs::write(recorded::path("vectors.json"), lines(&serde_json::to_value(vectors)?)?)?;
    tell_results()
}

/// Writes the new figures to the page.
fn tell_results() -> Result<()> {
    let page = page::read();
    let (before, rest) =
        page.split_once(page::BEGIN).context("docs/internals/parity.md has no mark for the results")?;
    let (_, after) = rest.split_once(page::END).context("docs/internals/parity.md has no mark for the results' end")?;
    let results = page::results(&Suite::read(), &Deliberate::read());
    println!("{results}");
    fs::write(page::path(), format!("{before}{results}{after}"))?;
    Ok(())
}

/// Returns JSON with one line for each field of the outer object.
fn lines(value: &serde_json::Value) -> Result<String> {
    let fields: BTreeMap<String, &serde_json::Value> =
        value.as_object().into_iter().flatten().map(|(name, field)| (name.clone(), field)).collect();
    let mut lines = Vec::new();
    for (name, field) in fields {
        lines.push(format!("{}: {field}", serde_json::to_string(&name)?));
    }
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

fn compare_new(versions: &[String], cases: &[Case]) -> Result<()> {
    let mut differing = 0;
    for version in versions {
        let mut spark = Spark::start(version)?;
        for case in cases {
            let sparks = spark.answer(case)?;
            if differences(&ours::answer(case, version), &sparks).is_empty() {
                continue;
            }
            differing += 1;
            let (smallest, found) = recorder::shrink(&mut spark, case)?;
            println!("{smallest}\n{found}\n");
        }
        eprintln!("Spark {version}: {} cases compared", cases.len());
    }
    ensure!(differing == 0, "{differing} cases differ");
    Ok(())
}
