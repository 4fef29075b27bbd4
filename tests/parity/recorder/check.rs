//! `--check-oracle`: compares the spark-submit in the warm JVM with `bin/spark-submit` as a process of its own.

use std::{fs, path::Path, process::Stdio};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Spark, command::Command, normalise, oracle::Raw};
use crate::{
    answer::Answer,
    case::{Case, bytes},
    compare::{Report, differences},
};

/// Runs `count` of the cases both ways, evenly spread over all cases.
pub(crate) fn check(versions: &[String], cases: &[&Case], count: usize) -> Result<()> {
    let mut report = Report::default();
    for version in versions {
        let mut spark = Spark::start(version)?;
        let for_it: Vec<&&Case> = cases.iter().filter(|case| case.is_for(version)).collect();
        let step = (for_it.len() / count.max(1)).max(1);
        for case in for_it.iter().step_by(step).take(count) {
            let warm = spark.answer(case)?;
            let (process, output) = run(&mut spark, case)?;
            let found = match (&warm, process) {
                // The process prints its refusal on standard error, together with other text.
                (Answer::Refused(sentence), Answer::Refused(_)) if output.contains(sentence.as_str()) => Vec::new(),
                (_, process) => differences(&warm, &process),
            };
            report.add(&case.name, version, found);
        }
        eprintln!("Spark {version}: {count} cases in process and as a process");
    }
    ensure!(report.is_empty(), "`ours` is the warm spark-submit, `Spark` the process:\n{report}");
    Ok(())
}

fn run(spark: &mut Spark, case: &Case) -> Result<(Answer, String)> {
    let oracle = &mut spark.oracle;
    let here = oracle.here();
    let question = Command::of(case).question(oracle.address(), &here);
    for (path, text) in question["files"].as_object().into_iter().flatten() {
        write(&Path::new(&here).join(path), text)?;
    }
    for folder in ["conf", "hadoop"] {
        fs::create_dir_all(Path::new(&here).join(folder))?;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let output = std::process::Command::new(oracle.home.join("bin/spark-submit"))
        .args(question["args"].as_array().into_iter().flatten().map(text))
        .current_dir(&here)
        .env_clear()
        .envs(super::oracle::environment(&oracle.home, Path::new(&here)))
        .envs(question["env"].as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))))
        .env("SPARK_SUBMIT_OPTS", format!("-Duser.home={here}/home"))
        .stdin(Stdio::null())
        .output()?;
    for entry in fs::read_dir(&here)? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let calls = oracle.ask(&json!({ "op": "calls" }))?;
    let raw = Raw {
        answer: json!({ "calls": calls }),
        address: oracle.address().to_owned(),
        here: here.clone(),
        at_ms: super::oracle::now_ms(),
    };
    Ok((normalise::answer(case, &raw), said.replace(&format!("{here}/"), "")))
}

fn write(path: &Path, text: &Value) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes(text.as_str().unwrap_or_default()))?;
    Ok(())
}
