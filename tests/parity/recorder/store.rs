//! Spark's raw answers, stored in `target/parity` so that a change of the suite needs no new runs.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Write,
    path::Path,
};

use anyhow::Result;
use serde_json::json;

use super::{command::Command, oracle::Raw};

pub(super) struct Store {
    known: HashMap<String, Raw>,
    file: File,
}

impl Store {
    /// Opens the store; empties it unless `reuse` is set.
    pub(super) fn open(version: &str, reuse: bool) -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("target/parity/answers-{version}.jsonl"));
        let mut known = HashMap::new();
        if reuse && path.exists() {
            for line in fs::read_to_string(&path)?.lines() {
                let (key, raw) = serde_json::from_str(line)?;
                known.insert(key, raw);
            }
        }
        let file = File::options().create(true).append(reuse).write(true).truncate(!reuse).open(path)?;
        Ok(Self { known, file })
    }

    pub(super) fn get(&self, command: &Command) -> Option<Raw> {
        self.known.get(&key(command)).cloned()
    }

    pub(super) fn put(&mut self, command: &Command, raw: &Raw) -> Result<()> {
        let key = key(command);
        if !self.known.contains_key(&key) {
            writeln!(self.file, "{}", json!([key, raw]))?;
            self.known.insert(key, raw.clone());
        }
        Ok(())
    }
}

fn key(command: &Command) -> String {
    json!(command).to_string()
}
