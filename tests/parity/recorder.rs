//! Asks the real spark-submits.

mod check;
mod command;
mod normalise;
mod oracle;
mod shrink;
mod store;
mod vectors;

use std::{
    collections::{BTreeMap, VecDeque},
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
    store: Store,
}

impl Spark {
    /// With `reuse`, a run that was made before with the same input isn't made again.
    pub(crate) fn start(version: &str, reuse: bool) -> Result<Self> {
        Ok(Self { oracle: Oracle::start(version)?, store: Store::open(version, reuse)? })
    }

    pub(crate) fn version(&self) -> &str {
        &self.oracle.version
    }

    pub(crate) fn answer(&mut self, case: &Case) -> Result<Answer> {
        let command = Command::of(case);
        let raw = match self.store.get(&command) {
            Some(raw) => raw,
            None => {
                let raw = self.oracle.submit(&command).with_context(|| case.name.clone())?;
                self.store.put(&command, &raw)?;
                raw
            }
        };
        Ok(normalise::answer(case, &raw))
    }
}

/// All answers to all cases, two releases at a time.
pub(crate) fn ask(versions: &[String], cases: &[&Case], reuse: bool) -> Result<Answers> {
    let todo: Mutex<VecDeque<&String>> = Mutex::new(versions.iter().collect());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(versions.len());
    let one = || -> Result<Vec<(String, BTreeMap<String, Answer>)>> {
        let mut all = Vec::new();
        loop {
            let next = todo.lock().unwrap().pop_front();
            let Some(version) = next else { return Ok(all) };
            all.push((version.clone(), ask_one(version, cases, reuse)?));
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

fn ask_one(version: &str, cases: &[&Case], reuse: bool) -> Result<BTreeMap<String, Answer>> {
    let started = Instant::now();
    let mut spark = Spark::start(version, reuse)?;
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
