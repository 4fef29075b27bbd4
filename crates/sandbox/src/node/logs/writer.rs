//! Writes a container's output line by line, each line with its time, as container runtimes do.
//!
//! A record is `<time> F <text>` for a whole line, or `<time> P <text>` for a part of one.

use std::fs::File;
use std::io::{self, Write as _};

use chrono::{SecondsFormat, Utc};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::watch;

use super::{LogFile, Progress};

/// The maximum length of a record; a longer line is written in parts.
const LONGEST: usize = 16 * 1024;
/// The size of a segment and the number of segments that are kept: the last 32 MiB of a pod's output, or a little less.
const SEGMENT: u64 = 8 * 1024 * 1024;
const KEPT: u64 = 4;

/// The writing end of a log. It notifies readers through `progress` of new text and of the end.
pub(in crate::node) struct LogWriter {
    file: LogFile,
    open: File,
    progress: watch::Sender<Progress>,
}

impl LogWriter {
    pub(super) fn create(file: LogFile) -> io::Result<(Self, watch::Receiver<Progress>)> {
        std::fs::create_dir_all(&file.dir)?;
        let open = File::create(file.segment(0))?;
        let (progress, receiver) = watch::channel(Progress::default());
        Ok((Self { file, open, progress }, receiver))
    }

    /// Copies the output until its end.
    pub(in crate::node) async fn pump(mut self, output: impl AsyncRead + Unpin) {
        let mut output = BufReader::with_capacity(LONGEST, output);
        loop {
            let chunk = match output.fill_buf().await {
                Ok([]) => break,
                Ok(chunk) => chunk,
                Err(error) => {
                    tracing::warn!(%error, "cannot read a container's output");
                    break;
                }
            };
            let used = chunk.len();
            if let Err(error) = self.write(chunk) {
                // The container keeps running; a full disk must not stop a job whose log may never be read.
                tracing::warn!(%error, "cannot write a container's log");
            }
            output.consume(used);
        }
    }

    /// Writes a line from the node itself, where there is no process that could write it.
    pub(in crate::node) fn say(&mut self, line: &str) {
        if let Err(error) = self.write(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, "cannot write a container's log");
        }
    }

    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Nanos, true);
        let mut records = Vec::with_capacity(chunk.len() + 64);
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            let (tag, text) = line.strip_suffix(b"\n").map_or(('P', line), |text| ('F', text));
            write!(records, "{time} {tag} ")?;
            records.extend_from_slice(text);
            records.push(b'\n');
        }
        self.open.write_all(&records)?;
        let now = *self.progress.borrow();
        let bytes = now.bytes + records.len() as u64;
        if bytes < SEGMENT {
            self.progress.send_replace(Progress { bytes, ..now });
            return Ok(());
        }
        let segment = now.segment + 1;
        self.open = File::create(self.file.segment(segment))?;
        self.progress.send_replace(Progress { segment, bytes: 0, done: false });
        if let Some(old) = segment.checked_sub(KEPT) {
            std::fs::remove_file(self.file.segment(old))?;
        }
        Ok(())
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.progress.send_modify(|progress| progress.done = true);
    }
}
