use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::super::{Known, Logs};
use super::*;

/// Begins a log to which everything is appended that is written to the returned stream.
fn begin(dir: &std::path::Path) -> (Logs, tokio::io::DuplexStream, tokio::task::JoinHandle<()>) {
    let logs = Logs::default();
    let writer = logs.begin("ns", "pod", "uid", LogFile::new(dir, "c")).unwrap();
    let (input, output) = tokio::io::duplex(64 * 1024);
    let pump = tokio::spawn(writer.pump(output));
    (logs, input, pump)
}

fn log(logs: &Logs) -> Log {
    match logs.find("ns", "pod", "c") {
        Some(Known::Log(log)) => log,
        other => panic!("{other:?}"),
    }
}

async fn all(log: Log, options: Options) -> String {
    let (sender, mut receiver) = mpsc::channel(4);
    tokio::spawn(read(log, options, sender));
    let mut text = Vec::new();
    while let Some(chunk) = receiver.recv().await {
        text.extend_from_slice(&chunk.unwrap());
    }
    String::from_utf8(text).unwrap()
}

async fn written(text: &[&str]) -> (tempfile::TempDir, Log) {
    let dir = tempfile::tempdir().unwrap();
    let (logs, mut input, pump) = begin(dir.path());
    for part in text {
        input.write_all(part.as_bytes()).await.unwrap();
        input.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
    drop(input);
    pump.await.unwrap();
    let log = log(&logs);
    (dir, log)
}

#[tokio::test]
async fn text_is_read_as_it_was_written() {
    let long = "x".repeat(40_000);
    let text = ["one\n\ntw", "o\n", &long, "\nthe end"];
    let (_dir, log) = written(&text).await;
    assert_eq!(all(log, Options::default()).await, text.concat());
}

#[tokio::test]
async fn tail_counts_lines() {
    let (_dir, log) = written(&["a\n", "b\nc\n"]).await;
    for (lines, expected) in [(0, ""), (1, "c\n"), (2, "b\nc\n"), (9, "a\nb\nc\n")] {
        assert_eq!(all(log.clone(), Options { tail: Some(lines), ..Default::default() }).await, expected);
    }
    let (_dir, log) = written(&["a\nb\nhalf"]).await;
    assert_eq!(all(log, Options { tail: Some(2), ..Default::default() }).await, "b\nhalf");
}

#[tokio::test]
async fn limit_cuts_bytes() {
    let (_dir, log) = written(&["abc\ndef\n"]).await;
    assert_eq!(all(log, Options { limit: Some(5), ..Default::default() }).await, "abc\nd");
}

#[tokio::test]
async fn since_leaves_out_what_is_older() {
    let (_dir, log) = written(&["a\n"]).await;
    let hour = chrono::Duration::hours(1);
    assert_eq!(all(log.clone(), Options { since: Some(Utc::now() - hour), ..Default::default() }).await, "a\n");
    assert_eq!(all(log, Options { since: Some(Utc::now() + hour), ..Default::default() }).await, "");
}

#[tokio::test]
async fn timestamps_precede_lines() {
    let (_dir, log) = written(&["a\nb\n"]).await;
    let text = all(log, Options { timestamps: true, ..Default::default() }).await;
    for (line, expected) in text.lines().zip(["a", "b"]) {
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(DateTime::parse_from_rfc3339(time).is_ok(), "{line}");
        assert_eq!(rest, expected);
    }
}

#[tokio::test]
async fn follow_continues_across_segments_and_ends_with_the_container() {
    let dir = tempfile::tempdir().unwrap();
    let (logs, mut input, pump) = begin(dir.path());
    input.write_all(b"first\n").await.unwrap();
    let reader = tokio::spawn(all(log(&logs), Options { follow: true, ..Default::default() }));
    let line = format!("{}\n", "y".repeat(8_000));
    let count = 1_500;
    for _ in 0..count {
        input.write_all(line.as_bytes()).await.unwrap();
        // Only one segment may be behind: the reader is meant to keep up here.
        tokio::task::yield_now().await;
    }
    drop(input);
    pump.await.unwrap();
    let text = reader.await.unwrap();
    assert_eq!(text.len(), 6 + count * line.len());
    assert!(LogFile::new(dir.path(), "c").segments().len() > 1);
}

#[tokio::test]
async fn old_segments_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (logs, mut input, pump) = begin(dir.path());
    let line = format!("{}\n", "z".repeat(15_000));
    for _ in 0..3_000 {
        input.write_all(line.as_bytes()).await.unwrap();
    }
    input.write_all(b"last\n").await.unwrap();
    drop(input);
    pump.await.unwrap();
    let segments = LogFile::new(dir.path(), "c").segments();
    assert_eq!(segments.len(), 4, "{segments:?}");
    let text = all(log(&logs), Options { tail: Some(1), ..Default::default() }).await;
    assert_eq!(text, "last\n");
}
