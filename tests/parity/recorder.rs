//! Runs the real spark-submits.

mod check;
mod command;
mod normalise;
mod oracle;
mod shrink;
mod store;
mod vectors;

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::Mutex,
    time::Instant,
};

use anyhow::{Context, Result};

pub(crate) use check::check;
pub(crate) use shrink::shrink;
pub(crate) use vectors::record as record_vectors;

use crate::{answer::Answer, case::Case, recorded::Answers};
use command::Command;
use oracle::Oracle;
use store::Store;

/// The spark-submit of one release.
pub(crate) struct Spark {
    oracle: Oracle,
    /// Earlier answers; without it no answers are stored.
    store: Option<Store>,
}

impl Spark {
    pub(crate) fn start(version: &str) -> Result<Self> {
        Self::start_in(version, None)
    }

    /// Starts that of a release in a directory of its own; without one, it is downloaded.
    pub(crate) fn start_in(version: &str, home: Option<&Path>) -> Result<Self> {
        Ok(Self { oracle: Oracle::start(version, home)?, store: None })
    }

    pub(crate) fn version(&self) -> &str {
        &self.oracle.version
    }

    pub(crate) fn answer(&mut self, case: &Case) -> Result<Answer> {
        let command = Command::of(case);
        let known = self.store.as_ref().and_then(|store| store.get(&command));
        let raw = match known {
            Some(raw) => raw,
            // A busy machine can make one hang; if it hangs twice, the case is the cause.
            None => self
                .oracle
                .submit(&command)
                .or_else(|_| self.oracle.submit(&command))
                .with_context(|| case.name.clone())?,
        };
        if let Some(store) = &mut self.store {
            store.put(&command, &raw)?;
        }
        Ok(normalise::answer(case, &raw))
    }
}

/// Which of Spark's answers are kept after the run of the recorder.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    Nothing,
    /// Those of this run, instead of earlier ones.
    Fresh,
    /// Earlier ones too: a case with the same input isn't run again.
    All,
}

/// Returns all answers to all cases; runs one release per processor at a time.
pub(crate) fn ask(versions: &[String], cases: &[&Case], keep: Keep) -> Result<Answers> {
    let todo: Mutex<VecDeque<&String>> = Mutex::new(versions.iter().collect());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(versions.len());
    let one = || -> Result<Vec<(String, BTreeMap<String, Answer>)>> {
        let mut all = Vec::new();
        loop {
            let next = todo.lock().unwrap().pop_front();
            let Some(version) = next else { return Ok(all) };
            all.push((version.clone(), ask_one(version, cases, keep)?));
        }
    };
    let mut answers = Answers::new();
    std::thread::scope(|scope| -> Result<()> {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        for thread in threads {
            for (version, of_version) in thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?? {
                for (case, answer) in of_version {
                    answers.entry(case).or_default().insert(version.clone(), answer);
                }
            }
        }
        Ok(())
    })?;
    Ok(answers)
}

fn ask_one(version: &str, cases: &[&Case], keep: Keep) -> Result<BTreeMap<String, Answer>> {
    let started = Instant::now();
    let mut spark = Spark::start(version)?;
    spark.store = match keep {
        Keep::Nothing => None,
        Keep::Fresh => Some(Store::open(version, false)?),
        Keep::All => Some(Store::open(version, true)?),
    };
    let mut answers = BTreeMap::new();
    for case in cases.iter().filter(|case| case.is_for(version)) {
        match spark.answer(case) {
            Ok(answer) => drop(answers.insert(case.name.clone(), answer)),
            Err(error) => eprintln!("no answer: {error:#}"),
        }
    }
    eprintln!("Spark {version}: {} cases, {} s", answers.len(), started.elapsed().as_secs());
    Ok(answers)
}
