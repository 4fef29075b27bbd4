//! Selects what the application itself wrote from a log that is being read.

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream, stream::BoxStream};

use sparkgate_common::error::Error;
use sparkgate_submission::OwnOutput;

/// By this many bytes a line is judged, with its time; the rest of a longer line has the same judgement.
const JUDGED: usize = 4096;

/// Returns the lines of a log that the application wrote. If `with_times`, each line begins with its time and a space.
pub(super) fn own_output(
    log: BoxStream<'static, Result<Bytes, Error>>,
    with_times: bool,
) -> BoxStream<'static, Result<Bytes, Error>> {
    let selection = Selection { with_times, ..Selection::default() };
    stream::unfold(Some((log, selection)), async |open| {
        let (mut log, mut selection) = open?;
        loop {
            let (part, next) = match log.next().await {
                Some(Ok(piece)) => (selection.take(&piece), true),
                Some(Err(error)) => return Some((Err(error), None)),
                None => (selection.finish(), false),
            };
            if !next {
                return (!part.is_empty()).then_some((Ok(part), None));
            }
            if !part.is_empty() {
                return Some((Ok(part), Some((log, selection))));
            }
        }
    })
    // A body may be polled again after its end.
    .fuse()
    .boxed()
}

#[derive(Default)]
struct Selection {
    own: OwnOutput,
    with_times: bool,
    /// The beginning of a line that isn't judged yet.
    begun: BytesMut,
    /// Whether the rest of the current line is wanted, if its beginning was judged.
    judged: Option<bool>,
}

impl Selection {
    fn take(&mut self, piece: &[u8]) -> Bytes {
        let mut out = BytesMut::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let is_over = part.ends_with(b"\n");
            match self.judged {
                Some(is_wanted) => out.extend_from_slice(if is_wanted { part } else { &[] }),
                None => {
                    self.begun.extend_from_slice(part);
                    if is_over || self.begun.len() >= JUDGED {
                        out.extend_from_slice(&self.judge());
                    }
                }
            }
            if is_over {
                self.judged = None;
            }
        }
        out.freeze()
    }

    /// Returns the last line, which has no line feed.
    fn finish(&mut self) -> Bytes {
        if self.begun.is_empty() { Bytes::new() } else { self.judge() }
    }

    /// Judges the line that has begun, and returns what it has so far if it is wanted.
    fn judge(&mut self) -> Bytes {
        let line = self.begun.split().freeze();
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        let text = if self.with_times { text.split_once(' ').map_or(text, |(_, text)| text) } else { text };
        let is_wanted = self.own.has(text);
        self.judged = Some(is_wanted);
        if is_wanted { line } else { Bytes::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(pieces: &[&[u8]], with_times: bool) -> String {
        let mut selection = Selection { with_times, ..Selection::default() };
        let mut text: Vec<u8> = pieces.iter().flat_map(|piece| selection.take(piece)).collect();
        text.extend(selection.finish());
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn a_log_without_own_output_ends_and_stays_ended() {
        let log = stream::iter([Ok(Bytes::from_static(b"26/01/02 03:04:05 INFO A: b\n"))]).boxed();
        let mut own = own_output(log, false);
        assert!(own.next().await.is_none() && own.next().await.is_none());
    }

    #[test]
    fn lines_are_selected_however_they_are_cut_into_pieces() {
        let log = b"rows: 7\n26/01/02 03:04:05 INFO A: b\nlast" as &[u8];
        assert_eq!(selected(&[log], false), "rows: 7\nlast");
        for at in 0..log.len() {
            assert_eq!(selected(&[&log[..at], &log[at..]], false), "rows: 7\nlast", "{at}");
        }
    }

    #[test]
    fn times_at_the_beginnings_of_lines_are_kept() {
        let log = b"2026-01-02T03:04:05Z 26/01/02 03:04:05 INFO A: b\n2026-01-02T03:04:05Z own\n";
        assert_eq!(selected(&[log], true), "2026-01-02T03:04:05Z own\n");
    }

    #[test]
    fn a_long_line_is_judged_by_its_beginning() {
        let (own, record) = ("x".repeat(3 * JUDGED), format!("26/01/02 03:04:05 INFO A: {}", "y".repeat(3 * JUDGED)));
        let log = format!("{record}\n{own}\n");
        let pieces: Vec<&[u8]> = log.as_bytes().chunks(1000).collect();
        assert_eq!(selected(&pieces, false), format!("{own}\n"));
    }
}
