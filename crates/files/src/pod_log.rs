//! The log of a container, as a sequence of compressed objects.
//!
//! The name of an object says which bytes of the log it has, and up to which line the log is stored with it. So a writer continues where
//! another one ended, and a reader finds a time or a line, by a list alone. If two writers store the same log for a while, one of them
//! may have missed lines, so that the same place has other bytes. A reader takes what one of them wrote, from where it began.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    fmt,
};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use uuid::Uuid;

use super::{Error, FileStore};

/// zstd's default: a log of Spark shrinks to a tenth of its size. Packing a part takes less than a millisecond.
const LEVEL: i32 = 3;
/// The largest part that is unpacked: more than a writer packs.
const LARGEST: u64 = 4 << 20;
/// The names of objects without content, that say how a log ended.
const WHOLE: &str = "end";
const CUT: &str = "cut";

/// Up to which line a log was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The latest time at the start of a line.
    pub latest: Option<DateTime<Utc>>,
    /// Number of lines with exactly that time.
    pub of_that_time: u64,
    /// Number of lines after the last of those.
    pub after: u64,
    /// Bytes of the last line's text.
    pub bytes: u64,
}

/// One object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogChunk {
    /// The bytes of the log that it has, before the compression.
    start: u64,
    pub end: u64,
    /// Line breaks of the log up to its end.
    pub lines: u64,
    pub position: LogPosition,
    /// Who wrote it; 0 if an earlier release did.
    writer: u32,
    /// Its last byte is a line break.
    ends_line: bool,
}

/// How a stored log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnding {
    /// It has all that the container wrote.
    Whole,
    /// It reached the largest size.
    Cut,
}

/// What is stored of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogIndex {
    /// In order; each begins where the one before ends, or before that.
    chunks: Vec<LogChunk>,
    /// `None` while it is written, and if its end was missed.
    pub ending: Option<LogEnding>,
    /// An object is missing between others: it was deleted, or the list of the store isn't complete.
    pub has_gap: bool,
}

/// The folder of one container's log.
#[derive(Debug, Clone)]
pub struct LogFolder {
    store: FileStore,
    key: String,
    /// Tells the objects of several writers apart.
    writer: u32,
}

impl FileStore {
    /// Returns the folder of a log. Each call stands for a writer of its own.
    pub fn log(&self, key: String) -> LogFolder {
        let (writer, ..) = Uuid::new_v4().as_fields();
        LogFolder { store: self.clone(), key, writer: writer.max(1) }
    }
}

impl LogIndex {
    fn new(mut chunks: Vec<LogChunk>, ending: Option<LogEnding>) -> Self {
        if let Some(chain) = chain(&chunks) {
            return Self { chunks: chain, ending, has_gap: false };
        }
        // Of an earlier release, whose writers stored the same bytes; or an object is missing.
        chunks.sort_by_key(|chunk| (chunk.start, Reverse(chunk.end)));
        let (mut end, mut has_gap) = (0, false);
        chunks.retain(|chunk| {
            has_gap |= chunk.start > end;
            let is_new = chunk.end > end;
            end = end.max(chunk.end);
            is_new
        });
        Self { chunks, ending, has_gap }
    }

    /// Returns the last object.
    pub fn last(&self) -> LogChunk {
        self.chunks.last().copied().unwrap_or_default()
    }

    /// Returns whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.ending.is_none()
    }

    /// Returns where the last `count` lines begin: the object, and how many line breaks to skip in it.
    pub fn tail(&self, count: u64) -> (usize, u64) {
        let last = self.last();
        // An unterminated last line counts.
        let lines = last.lines + u64::from(!last.ends_line && last.end > 0);
        if count == 0 {
            return (self.chunks.len(), 0);
        }
        let Some(skipped) = lines.checked_sub(count).filter(|skipped| *skipped > 0) else { return (0, 0) };
        let first = self.chunks.partition_point(|chunk| chunk.lines < skipped);
        (first, skipped - self.before(first).lines)
    }

    /// Returns the first object that may have lines since a time.
    pub fn since(&self, time: DateTime<Utc>) -> usize {
        let mut first = self
            .chunks
            .iter()
            .position(|chunk| chunk.position.latest.is_some_and(|latest| latest >= time))
            .unwrap_or(self.chunks.len());
        // A line that was written last may have an earlier time than one before.
        while first > 0 && !self.chunks[first - 1].ends_line {
            first -= 1;
        }
        first
    }

    fn before(&self, chunk: usize) -> LogChunk {
        chunk.checked_sub(1).and_then(|before| self.chunks.get(before)).copied().unwrap_or_default()
    }
}

impl LogFolder {
    /// Returns what is stored.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn index(&self) -> Result<LogIndex, Error> {
        let (mut chunks, mut ending) = (Vec::new(), None);
        for (name, _) in self.store.objects(&self.key).await? {
            match name.as_str() {
                WHOLE => ending = Some(LogEnding::Whole),
                CUT => ending = ending.or(Some(LogEnding::Cut)),
                // Others are not of this program.
                name => chunks.extend(parse(name)),
            }
        }
        Ok(LogIndex::new(chunks, ending))
    }

    /// Stores the text that follows an object, and returns the new one.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the text may have been stored.
    pub async fn append(&self, after: &LogChunk, text: &[u8], position: LogPosition) -> Result<LogChunk, Error> {
        let breaks = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        let chunk = LogChunk {
            start: after.end,
            end: after.end + text.len() as u64,
            lines: after.lines + breaks,
            position,
            writer: self.writer,
            ends_line: text.last() == Some(&b'\n'),
        };
        let packed = zstd::bulk::compress(text, LEVEL).map_err(|error| self.store.io("compressing a log", error))?;
        self.store.put(&self.key_of(&chunk), packed.into()).await?;
        Ok(chunk)
    }

    /// Stores that nothing follows.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn end(&self, ending: LogEnding) -> Result<(), Error> {
        let name = match ending {
            LogEnding::Whole => WHOLE,
            LogEnding::Cut => CUT,
        };
        self.store.put(&format!("{}/{name}", self.key), Bytes::new()).await
    }

    /// Returns the text from an object on, without a number of line breaks and what is before them.
    pub fn read(&self, index: LogIndex, first: usize, skipped: u64) -> BoxStream<'static, Result<Bytes, Error>> {
        let state = (self.clone(), index, first, skipped);
        stream::try_unfold(state, async |(folder, index, at, skipped)| {
            let Some(chunk) = index.chunks.get(at) else { return Ok(None) };
            let known = index.before(at).end.saturating_sub(chunk.start);
            let mut text = folder.text(chunk).await?;
            text = text.slice(usize::try_from(known).unwrap_or(usize::MAX).min(text.len())..);
            Ok(Some((without_lines(&text, skipped), (folder, index, at + 1, 0))))
        })
        .boxed()
    }

    async fn text(&self, chunk: &LogChunk) -> Result<Bytes, Error> {
        let packed = self.store.content(&self.key_of(chunk)).await?;
        let size = usize::try_from(chunk.end.saturating_sub(chunk.start).min(LARGEST)).unwrap_or_default();
        let text = zstd::bulk::decompress(&packed, size).map_err(|error| self.store.io("unpacking a log", error))?;
        Ok(text.into())
    }

    fn key_of(&self, chunk: &LogChunk) -> String {
        format!("{}/{chunk}", self.key)
    }
}

/// Returns the longest log that is written without a break: from its last object back to the first, from each to the one that its
/// writer continued. `None` if an object is missing.
fn chain(chunks: &[LogChunk]) -> Option<Vec<LogChunk>> {
    let mut by_end: HashMap<u64, Vec<&LogChunk>> = HashMap::new();
    for chunk in chunks {
        by_end.entry(chunk.end).or_default().push(chunk);
    }
    let mut last = chunks.iter().max_by_key(|chunk| (chunk.end, chunk.writer))?;
    let mut chain = vec![*last];
    while last.start > 0 {
        let before = by_end.get(&last.start)?;
        // A writer continues its own log, or once another's.
        last = *before.iter().find(|chunk| chunk.writer == last.writer).or_else(|| before.first())?;
        chain.push(*last);
    }
    chain.reverse();
    // Objects of an earlier release don't tell their writers.
    let writers: HashSet<_> = chain.iter().map(|chunk| chunk.writer).collect();
    (chain.len() == chunks.len() || !writers.contains(&0)).then_some(chain)
}

/// Returns what follows a number of line breaks.
fn without_lines(text: &Bytes, count: u64) -> Bytes {
    let Some(last) = count.checked_sub(1).and_then(|last| usize::try_from(last).ok()) else { return text.clone() };
    let mut breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    text.slice(breaks.nth(last).unwrap_or(text.len())..)
}

impl fmt::Display for LogChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogPosition { latest, of_that_time, after, bytes } = self.position;
        let latest = latest.and_then(|latest| latest.timestamp_nanos_opt()).unwrap_or_default();
        let (Self { start, end, lines, .. }, last) = (self, if self.ends_line { "line" } else { "part" });
        write!(f, "{start:012}-{end}-{lines}-{latest}-{of_that_time}-{after}-{bytes}-")?;
        match self.writer {
            0 => write!(f, "{last}.zst"),
            writer => write!(f, "{writer}-{last}.zst"),
        }
    }
}

/// The numbers in the name of an object, before that of its writer.
const NUMBERS: usize = 7;

/// Returns what the name of an object says. `None` if it is no part of a log.
fn parse(name: &str) -> Option<LogChunk> {
    let (numbers, ends_line) = match (name.strip_suffix("-line.zst"), name.strip_suffix("-part.zst")) {
        (Some(numbers), _) => (numbers, true),
        (_, numbers) => (numbers?, false),
    };
    let numbers: Vec<u64> = numbers.split('-').map(str::parse).collect::<Result<_, _>>().ok()?;
    let (numbers, writer) = match numbers[..] {
        [ref numbers @ .., writer] if numbers.len() == NUMBERS => (numbers, u32::try_from(writer).ok()?),
        ref numbers => (numbers, 0),
    };
    let [start, end, lines, latest, of_that_time, after, bytes] = *numbers else { return None };
    let latest = Some(i64::try_from(latest).ok()?).filter(|latest| *latest > 0).map(DateTime::from_timestamp_nanos);
    let position = LogPosition { latest, of_that_time, after, bytes };
    Some(LogChunk { start, end, lines, position, writer, ends_line }).filter(|chunk| start < chunk.end)
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    fn at(second: i64) -> LogPosition {
        LogPosition { latest: DateTime::from_timestamp(second, 5), of_that_time: 1, after: 0, bytes: 7 }
    }

    async fn text(folder: &LogFolder, first: usize, skipped: u64) -> String {
        let index = folder.index().await.unwrap();
        let parts: Vec<Bytes> = folder.read(index, first, skipped).try_collect().await.unwrap();
        String::from_utf8(parts.concat()).unwrap()
    }

    fn folder() -> (LogFolder, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let url = std::env::var("SPARKGATE_TEST_FILES_URL").unwrap_or_else(|_| dir.path().to_str().unwrap().to_owned());
        let store = FileStore::open(&url).unwrap().for_logs_of_installation(uuid::Uuid::new_v4());
        (store.log("red/20260101/driver-1/1/driver".to_owned()), dir)
    }

    #[tokio::test]
    async fn a_log_is_continued_and_read_by_its_names() {
        let (folder, _dir) = folder();
        assert!(folder.index().await.unwrap().is_empty());
        let first = folder.append(&LogChunk::default(), b"one\ntwo\n", at(10)).await.unwrap();
        let second = folder.append(&first, b"three\nfo", at(20)).await.unwrap();
        assert_eq!(folder.index().await.unwrap().last(), second, "what a writer needs is in the name");
        folder.append(&second, b"ur\nfive\n", at(30)).await.unwrap();
        folder.end(LogEnding::Whole).await.unwrap();
        let index = folder.index().await.unwrap();
        assert_eq!((index.ending, index.last().lines), (Some(LogEnding::Whole), 5));
        assert_eq!(text(&folder, 0, 0).await, "one\ntwo\nthree\nfour\nfive\n");
        for (count, last) in [(0, ""), (1, "five\n"), (2, "four\nfive\n"), (4, "two\nthree\nfour\nfive\n")] {
            let (first, skipped) = index.tail(count);
            assert_eq!(text(&folder, first, skipped).await, last, "{count}");
        }
        assert_eq!(index.tail(9), (0, 0));
        for (second, first) in [(5, 0), (15, 1), (25, 1), (40, 3)] {
            assert_eq!(
                index.since(DateTime::from_timestamp(second, 0).unwrap()),
                first,
                "no line begins in the middle"
            );
        }
    }

    #[tokio::test]
    async fn what_two_writers_stored_is_read_once() {
        let (folder, _dir) = folder();
        let start = LogChunk::default();
        let first = folder.append(&start, b"one\n", at(1)).await.unwrap();
        folder.append(&start, b"one\ntwo\nthr", at(3)).await.unwrap();
        let second = folder.append(&first, b"two\n", at(2)).await.unwrap();
        folder.append(&second, b"three\nfour\n", at(4)).await.unwrap();
        assert_eq!(text(&folder, 0, 0).await, "one\ntwo\nthree\nfour\n");
        let index = folder.index().await.unwrap();
        let (first, skipped) = index.tail(2);
        assert_eq!(text(&folder, first, skipped).await, "three\nfour\n");
    }

    #[tokio::test]
    async fn a_missing_object_is_noticed() {
        let (folder, _dir) = folder();
        let first = folder.append(&LogChunk::default(), b"one\n", at(1)).await.unwrap();
        let second = folder.append(&first, b"two\n", at(2)).await.unwrap();
        folder.append(&second, b"three\n", at(3)).await.unwrap();
        folder.end(LogEnding::Whole).await.unwrap();
        assert!(!folder.index().await.unwrap().has_gap);
        for missing in [second, first] {
            folder.store.delete(&folder.key_of(&missing)).await.unwrap();
            assert!(folder.index().await.unwrap().has_gap, "{missing:?}");
        }
        assert_eq!(text(&folder, 0, 0).await, "three\n");
    }

    /// The other one missed the second line, because its node had begun another file.
    #[tokio::test]
    async fn what_two_writers_stored_differently_is_not_mixed() {
        let (folder, _dir) = folder();
        let other = folder.store.log(folder.key.clone());
        let first = folder.append(&LogChunk::default(), b"one\n", at(1)).await.unwrap();
        folder.append(&first, b"two\nthree\n", at(3)).await.unwrap();
        let resumed = other.append(&first, b"three\n", at(3)).await.unwrap();
        other.append(&resumed, b"four\nfive\nsix\n", at(6)).await.unwrap();
        assert_eq!(text(&folder, 0, 0).await, "one\nthree\nfour\nfive\nsix\n");
        let index = folder.index().await.unwrap();
        let (first, skipped) = index.tail(4);
        assert_eq!(text(&folder, first, skipped).await, "three\nfour\nfive\nsix\n");
    }

    /// An earlier release stored the same bytes in parts of other lengths.
    #[test]
    fn parts_of_an_earlier_release_are_read() {
        let names = [
            "000000000000-4-1-1-1-0-7-line.zst",
            "000000000000-8-2-1-1-0-7-line.zst",
            "000000000004-9-3-1-1-0-7-line.zst",
        ];
        let chunks: Vec<_> = names.iter().map(|name| parse(name).unwrap()).collect();
        assert!(names.iter().zip(&chunks).all(|(name, chunk)| chunk.to_string() == *name));
        let index = LogIndex::new(chunks, None);
        assert_eq!(index.chunks.iter().map(|chunk| (chunk.start, chunk.end)).collect::<Vec<_>>(), [(0, 8), (4, 9)]);
        let named = LogChunk { end: 7, writer: 77, ..LogChunk::default() };
        assert_eq!(parse(&named.to_string()).map(|chunk| chunk.writer), Some(77));
    }

    #[tokio::test]
    async fn a_folder_is_deleted_unless_something_in_it_is_new() {
        let (folder, _dir) = folder();
        let chunk = folder.append(&LogChunk::default(), b"one\n", at(1)).await.unwrap();
        folder.append(&chunk, b"two\n", at(2)).await.unwrap();
        let store = &folder.store;
        assert_eq!(store.folders("").await.unwrap(), ["red"]);
        assert_eq!(store.folders("red/20260101").await.unwrap(), ["driver-1"]);
        let later = Utc::now() + chrono::TimeDelta::hours(1);
        assert_eq!(store.delete_folder("red/20260101/driver-1", later - chrono::TimeDelta::hours(2)).await.unwrap(), 0);
        assert_eq!(store.delete_folder("red/20260101/driver-1", later).await.unwrap(), 2);
        assert!(store.folders("red/20260101").await.unwrap().is_empty());
        store.probe().await.unwrap();
    }

    #[test]
    fn other_names_are_no_part_of_a_log() {
        for name in ["", "x", "1-2-line.zst", "000000000000-0-0-0-0-0-0-line.zst", "1-2-3-4-5-6-7-8-9-line.zst"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
