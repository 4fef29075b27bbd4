//! Writes a log into the store, part by part, from the position at which its last writer ended.

use std::{mem, time::Duration};

use chrono::Utc;
use tokio::{sync::Semaphore, time::Instant};

use super::lines::Lines;
use sparkgate_files::{Error, LogChunk, LogEnding, LogFolder};
use sparkgate_metrics::metrics;

/// A part of this size is stored at once. Each log that is read holds one.
const PART: usize = 128 << 10;
/// How old the text of a smaller part gets: twice as old each time, so that a log that grows slowly has few objects.
const FIRST: Duration = Duration::from_secs(5);
const DOUBLED: u32 = 6;

/// A log that is being stored.
pub(super) struct LogWriter {
    folder: LogFolder,
    last: LogChunk,
    pub(super) lines: Lines,
    /// Stored bytes that don't count for the record yet.
    uncounted: u64,
    /// What follows `last`, with the times of its lines.
    text: Vec<u8>,
    /// When the text has to be stored.
    due: Option<Instant>,
    small_parts: u32,
}

impl LogWriter {
    /// Continues a log. `None` if its end is stored.
    pub(super) async fn resume(folder: LogFolder) -> Result<Option<Self>, Error> {
        let index = folder.index().await?;
        if index.ending.is_some() {
            return Ok(None);
        }
        let last = index.last();
        let lines = Lines::after(last.position);
        Ok(Some(Self { folder, last, lines, uncounted: 0, text: Vec::new(), due: None, small_parts: 0 }))
    }

    /// Takes what was read.
    pub(super) fn take(&mut self, piece: &[u8]) {
        let new = self.lines.take(piece);
        self.add(&new);
    }

    fn add(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        self.text.extend_from_slice(text);
        self.due.get_or_insert_with(|| Instant::now() + FIRST * 2_u32.pow(self.small_parts.min(DOUBLED)));
    }

    /// Returns when the text has to be stored; `None` if there is none.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn has_part(&self) -> bool {
        self.text.len() >= PART
    }

    /// Returns how much was taken of the log.
    pub(super) fn size(&self) -> u64 {
        self.last.end + self.text.len() as u64
    }

    /// Stores the text. Of all logs, as many parts are stored at once as `puts` has permits.
    pub(super) async fn store(&mut self, puts: &Semaphore) -> Result<(), Error> {
        if self.text.is_empty() {
            return Ok(());
        }
        let _one = puts.acquire().await;
        self.last = self.folder.append(&self.last, &self.text, self.lines.position()).await?;
        metrics().log_stored_bytes.inc_by(self.text.len() as u64);
        self.uncounted += self.text.len() as u64;
        self.small_parts = if self.has_part() { 0 } else { self.small_parts + 1 };
        (self.text, self.due) = (Vec::new(), None);
        Ok(())
    }

    /// Returns how many stored bytes have to be counted for the record, if there are at least so many.
    pub(super) fn take_uncounted(&mut self, least: u64) -> Option<u64> {
        (self.uncounted >= least.max(1)).then(|| mem::take(&mut self.uncounted))
    }

    /// Adds what is left of an incomplete last line.
    pub(super) fn finish(&mut self) {
        let rest = self.lines.finish();
        self.add(&rest);
    }

    /// Adds a line that says that the rest isn't stored.
    pub(super) fn cut(&mut self, largest: u64) {
        let time = self.lines.position().latest.unwrap_or_else(Utc::now);
        let time = time.to_rfc3339_opts(chrono::SecondsFormat::Nanos, true);
        let line_break = if self.text.last().is_none_or(|byte| *byte == b'\n') { "" } else { "\n" };
        let line = format!(
            "{line_break}{time} [sparkgate] the rest of this log is not stored: it is larger than {largest} bytes\n"
        );
        self.add(line.as_bytes());
    }

    /// Stores that nothing follows.
    pub(super) async fn end(&self, ending: LogEnding) -> Result<(), Error> {
        self.folder.end(ending).await
    }
}
