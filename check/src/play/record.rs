//! Writes the history while it happens.

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use crate::history::{self, Act, Answer, Call, History, Line};

/// Keeps what is recorded, and writes it to a file. All copies are of one history.
#[derive(Debug)]
pub struct Recorder<W> {
    began: Instant,
    kept: Arc<Mutex<(History, W)>>,
}

impl<W> Clone for Recorder<W> {
    fn clone(&self) -> Self {
        Self { began: self.began, kept: self.kept.clone() }
    }
}

impl<W: Write> Recorder<W> {
    pub fn new(file: W) -> Self {
        Self { began: Instant::now(), kept: Arc::new(Mutex::new((History::default(), file))) }
    }

    /// Returns the microseconds since the run began.
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Records a line.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn add(&self, line: Line) -> anyhow::Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        history::write(&mut kept.1, &line)?;
        kept.0.add(line);
        Ok(())
    }

    /// Makes a call and records it with its answer.
    ///
    /// # Errors
    /// The file can't be written.
    pub async fn call(&self, act: Act, call: impl Future<Output = Answer>) -> anyhow::Result<Answer> {
        let began = self.now();
        let answer = call.await;
        self.add(Line::Call(Call { began, ended: self.now(), act, answer: answer.clone() }))?;
        Ok(answer)
    }

    /// Returns what was recorded so far.
    pub fn history(&self) -> History {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    pub(super) fn flush(&self) -> anyhow::Result<()> {
        Ok(self.kept.lock().unwrap_or_else(PoisonError::into_inner).1.flush()?)
    }
}
