//! Reads a log: the requested part of the existing text, and, on request, everything that follows.

use std::io::{self, SeekFrom};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::mpsc::Sender;

use super::{Log, LogFile};

/// Length of `<time> F `.
const HEAD: usize = 33;
const TIME: usize = 30;

/// The kubelet API's log options.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) follow: bool,
    pub(super) timestamps: bool,
    /// The number of lines from the end.
    pub(super) tail: Option<usize>,
    /// The maximum number of bytes in total.
    pub(super) limit: Option<usize>,
    pub(super) since: Option<DateTime<Utc>>,
}

/// Sends the log until its end, the limit, or until the reader disconnects.
pub(super) async fn read(mut log: Log, options: Options, out: Sender<io::Result<Bytes>>) {
    let mut cursor = Cursor { segment: log.file.segments().first().copied().unwrap_or_default(), offset: 0 };
    let mut printer = Printer { timestamps: options.timestamps, left: options.limit, in_line: false };
    let mut tail = options.tail;
    loop {
        let now = *log.progress.borrow_and_update();
        let mut records = Vec::new();
        if let Err(error) = cursor.advance(&log.file, now.segment, &mut records).await {
            let _ = out.send(Err(error)).await;
            return;
        }
        let mut chosen = since(&records, options.since);
        if let Some(lines) = tail.take() {
            chosen = last_lines(chosen, lines);
        }
        let text = printer.print(chosen);
        let gone = !text.is_empty() && out.send(Ok(text)).await.is_err();
        let ended = now.done || !options.follow || printer.left == Some(0);
        if gone || ended {
            return;
        }
        tokio::select! {
            // An error means that the writer was dropped; the last value says `done`, which ends the loop.
            _ = log.progress.changed() => {}
            () = out.closed() => return,
        }
    }
}

struct Cursor {
    segment: u64,
    offset: u64,
}

impl Cursor {
    /// Appends everything up to the current end of segment `last`. Segments that no longer exist are skipped.
    async fn advance(&mut self, file: &LogFile, last: u64, records: &mut Vec<u8>) -> io::Result<()> {
        loop {
            match File::open(file.segment(self.segment)).await {
                Ok(mut segment) => {
                    segment.seek(SeekFrom::Start(self.offset)).await?;
                    let start = records.len();
                    segment.read_to_end(records).await?;
                    // A record that is still being written is read the next time.
                    let whole = records[start..].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    records.truncate(start + whole);
                    self.offset += whole as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            if self.segment >= last {
                return Ok(());
            }
            *self = Self { segment: self.segment + 1, offset: 0 };
        }
    }
}

fn lines(records: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    records.split_inclusive(|byte| *byte == b'\n').filter(|record| record.len() > HEAD)
}

fn is_whole(record: &[u8]) -> bool {
    record.get(TIME + 1) == Some(&b'F')
}

fn since(records: &[u8], since: Option<DateTime<Utc>>) -> &[u8] {
    let Some(since) = since else { return records };
    let late = |record: &[u8]| {
        let time = std::str::from_utf8(record.get(..TIME)?).ok()?;
        Some(DateTime::parse_from_rfc3339(time).ok()? >= since)
    };
    let early: usize = lines(records).take_while(|record| late(record) != Some(true)).map(<[u8]>::len).sum();
    &records[early..]
}

/// Returns the records of the last `count` lines; an incomplete last line counts as one.
fn last_lines(records: &[u8], count: usize) -> &[u8] {
    let mut left = count;
    let mut from = records.len();
    for (place, record) in lines(records).rev().enumerate() {
        if is_whole(record) || place == 0 {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        from -= record.len();
    }
    &records[from..]
}

struct Printer {
    timestamps: bool,
    left: Option<usize>,
    /// Whether the last record was a part of a line.
    in_line: bool,
}

impl Printer {
    fn print(&mut self, records: &[u8]) -> Bytes {
        let mut text = Vec::with_capacity(records.len());
        for record in lines(records) {
            if self.timestamps && !self.in_line {
                text.extend_from_slice(&record[..=TIME]);
            }
            let end = if is_whole(record) { record.len() } else { record.len() - 1 };
            text.extend_from_slice(&record[HEAD..end]);
            self.in_line = !is_whole(record);
        }
        if let Some(left) = &mut self.left {
            text.truncate(*left);
            *left -= text.len();
        }
        text.into()
    }
}

#[cfg(test)]
mod tests;
