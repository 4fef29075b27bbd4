//! The audit as JSON lines, in a file or on standard output. A thread writes them, so that a slow disk delays no request: entries
//! that it can't write in time are dropped and counted. All entries are in the database.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use anyhow::Context;
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use sparkgate_http::audit_line;
use sparkgate_store::{self, AuditEntry};

/// Entries that wait for the thread. One has some hundred bytes.
const WAITING: usize = 16_384;
/// Pause between two tries to send a message while as many wait.
const FULL: Duration = Duration::from_millis(10);
/// Maximum size of one write, unless one line is longer.
const TOGETHER: usize = 64 * 1024;

/// What the thread receives.
enum Message {
    Line(String),
    /// A request to report when all lines before it are written.
    Flush(oneshot::Sender<()>),
}

/// The sender of entries to the thread. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct AuditLog {
    messages: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

/// Where the lines go.
trait Output: Write + Send + 'static {
    /// Prepares for the next write.
    fn renew(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AuditLog {
    /// Starts the thread. `target` is a file, to which lines are appended, or `-` for standard output.
    ///
    /// # Errors
    /// The file can't be opened.
    pub(super) fn open(target: &Path) -> anyhow::Result<Self> {
        if target == Path::new("-") {
            return Ok(Self::start(io::stdout(), WAITING));
        }
        let file =
            Appended::open(target.to_owned()).with_context(|| format!("opening the audit log {}", target.display()))?;
        Ok(Self::start(file, WAITING))
    }

    fn start(output: impl Output, waiting: usize) -> Self {
        let (messages, received) = sync_channel(waiting);
        let dropped = Arc::<AtomicU64>::default();
        let writer = Writer { output, received, dropped: dropped.clone(), is_mid_line: false, lost: 0 };
        thread::spawn(|| writer.run());
        Self { messages, dropped }
    }

    /// Waits until all entries so far are written, for this long at most.
    pub(super) async fn flush(&self, limit: Duration) {
        let (done, written) = oneshot::channel();
        let flushed = async {
            let mut message = Message::Flush(done);
            loop {
                message = match self.messages.try_send(message) {
                    Ok(()) => return written.await.is_ok(),
                    Err(TrySendError::Disconnected(_)) => return false,
                    Err(TrySendError::Full(message)) => message,
                };
                sleep(FULL).await;
            }
        };
        if !timeout(limit, flushed).await.unwrap_or(false) {
            tracing::error!("the end of the audit log is not written: its entries are in the database");
        }
    }
}

impl sparkgate_store::AuditLog for AuditLog {
    fn append(&self, entry: AuditEntry) {
        match self.messages.try_send(Message::Line(audit_line(entry))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                if self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::error!(
                        "the audit log is written too slowly: entries are left out, which are in the database"
                    );
                }
            }
        }
    }
}

/// The thread.
struct Writer<O> {
    output: O,
    received: Receiver<Message>,
    dropped: Arc<AtomicU64>,
    /// A write failed within a line.
    is_mid_line: bool,
    /// Lines that couldn't be written since the last success.
    lost: u64,
}

impl<O: Output> Writer<O> {
    /// Writes until all senders are dropped.
    fn run(mut self) {
        while let Ok(first) = self.received.recv() {
            let (mut text, mut flushes) = (String::new(), Vec::new());
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Line(line) => text.push_str(&line),
                    Message::Flush(done) => flushes.push(done),
                }
                next = if text.len() < TOGETHER { self.received.try_recv().ok() } else { None };
            }
            self.write(&text);
            for done in flushes {
                let _ = done.send(());
            }
        }
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.try_write(text.as_bytes()) {
            Ok(()) => {
                let missing = std::mem::take(&mut self.lost) + self.dropped.swap(0, Ordering::Relaxed);
                if missing > 0 {
                    tracing::warn!(
                        missing,
                        "the audit log is written again; entries that are missing are in the database"
                    );
                }
            }
            Err((error, lost)) => {
                if self.lost == 0 {
                    tracing::error!("the audit log can't be written, its entries are in the database: {error}");
                }
                self.lost += lost;
            }
        }
    }

    /// Writes whole lines. On an error, returns how many of them were not written.
    fn try_write(&mut self, text: &[u8]) -> Result<(), (io::Error, u64)> {
        let lines = |text: &[u8]| text.iter().map(|byte| u64::from(*byte == b'\n')).sum();
        self.output.renew().map_err(|error| (error, lines(text)))?;
        if self.is_mid_line {
            self.output.write_all(b"\n").map_err(|error| (error, lines(text)))?;
            self.is_mid_line = false;
        }
        let mut rest = text;
        while !rest.is_empty() {
            match self.output.write(rest) {
                Ok(0) => return Err((io::ErrorKind::WriteZero.into(), lines(rest))),
                Ok(count) => {
                    self.is_mid_line = rest[..count].last() != Some(&b'\n');
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((error, lines(rest))),
            }
        }
        self.output.flush().map_err(|error| (error, 0))
    }
}

impl Output for io::Stdout {}

/// A file to which lines are appended. It is opened again if another one, or none, has its path: logs are rotated by renaming
/// them.
struct Appended {
    path: PathBuf,
    file: File,
}

impl Appended {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = open(&path)?;
        Ok(Self { path, file })
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

impl Write for Appended {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.file.write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for Appended {
    fn renew(&mut self) -> io::Result<()> {
        let own = self.file.metadata()?;
        let is_own =
            std::fs::metadata(&self.path).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()));
        if !is_own {
            self.file = open(&self.path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::mpsc::{self, Sender},
    };

    use chrono::DateTime;

    use super::*;
    use sparkgate_store::AuditLog as _;

    fn entry(id: i64) -> AuditEntry {
        AuditEntry {
            id,
            at: DateTime::UNIX_EPOCH,
            principal: "corp:alice".to_owned(),
            address: None,
            request_id: Some("r".to_owned()),
            action: "kill".to_owned(),
            tenant: Some("red".to_owned()),
            submission_id: None,
            verdict: "denied".to_owned(),
            detail: Some("a \"quote\"\nand a line".to_owned()),
        }
    }

    fn line(id: i64) -> String {
        format!(
            r#"{{"id":{id},"at":"1970-01-01T00:00:00Z","subject":"corp:alice","action":"kill","tenant":"red","verdict":"denied","detail":"a \"quote\"\nand a line","requestId":"r"}}"#
        )
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn entries_are_appended_as_lines_also_to_a_file_that_was_rotated() {
        let dir = tempfile::tempdir().unwrap();
        let (path, rotated) = (dir.path().join("audit.jsonl"), dir.path().join("audit.jsonl.1"));
        fs::write(&path, "before\n").unwrap();
        let log = AuditLog::open(&path).unwrap();
        log.append(entry(1));
        log.append(entry(2));
        log.flush(LONG).await;
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("before\n{}\n{}\n", line(1), line(2)));
        fs::rename(&path, &rotated).unwrap();
        log.append(entry(3));
        log.flush(LONG).await;
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", line(3)));
        assert!(!fs::read_to_string(&rotated).unwrap().contains(&line(3)));
        assert!(AuditLog::open(&dir.path().join("none/audit.jsonl")).is_err());
    }

    /// An output that reports each write, and waits until the test says how many bytes it writes, or how it fails.
    struct Stuck {
        writes: Sender<Vec<u8>>,
        go_on: Receiver<io::Result<usize>>,
    }

    impl Write for Stuck {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.writes.send(text.to_owned()).unwrap();
            Ok(self.go_on.recv().unwrap()?.min(text.len()))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for Stuck {}

    #[tokio::test]
    async fn a_disk_that_hangs_or_is_full_blocks_no_caller_and_spoils_no_line() {
        let (all, half) = (usize::MAX, line(1).len() / 2);
        let (continued, go_on) = mpsc::channel();
        let (writes, written) = mpsc::channel();
        let log = AuditLog::start(Stuck { writes, go_on }, 2);
        let next = || String::from_utf8(written.recv().unwrap()).unwrap();
        log.append(entry(1));
        assert_eq!(next(), format!("{}\n", line(1)));
        (2..=10).for_each(|id| log.append(entry(id)));
        assert_eq!(log.dropped.load(Ordering::Relaxed), 7, "two wait");
        continued.send(Ok(half)).unwrap();
        assert_eq!(next(), format!("{}\n", &line(1)[half..]));
        continued.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        assert_eq!(next(), "\n", "the broken line is ended");
        continued.send(Ok(all)).unwrap();
        assert_eq!(next(), format!("{}\n{}\n", line(2), line(3)));
        continued.send(Ok(all)).unwrap();
        log.flush(LONG).await;
        assert_eq!(log.dropped.load(Ordering::Relaxed), 0, "the dropped entries were reported");
    }
}
