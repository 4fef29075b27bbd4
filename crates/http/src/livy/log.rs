//! The log of a batch: the last lines of the driver's log, and then why the batch failed or doesn't run yet, which clients of Livy
//! learn from nowhere else.

use futures::TryStreamExt;

use sparkgate_service::{FailureReason, Log, LogRequest, NoLog, Service, Session, Submission};
use sparkgate_web::problem::{Code, Problem};

/// The lines that are kept for clients, as Livy keeps a number of lines, too, and the most text of them.
pub(super) const MOST_LINES: usize = 2000;
const MOST_BYTES: usize = 4 << 20;

/// Returns the last lines of a batch.
pub(super) async fn lines(
    service: &Service,
    caller: &Session,
    batch: &Submission,
    most: usize,
) -> Result<Vec<String>, Problem> {
    let request = LogRequest { tail: Some(most as u64), ..LogRequest::default() };
    let text = match service.logs.log(caller, &batch.id, &request).await? {
        Log::Stream(mut log) => {
            let mut text = Vec::new();
            while let Some(piece) = log.bytes.try_next().await? {
                text.extend_from_slice(&piece);
                if text.len() > 2 * MOST_BYTES {
                    text.drain(..text.len() - MOST_BYTES);
                }
            }
            text
        }
        Log::None(NoLog::Limited(exceeded)) => return Err(exceeded.into()),
        Log::None(NoLog::Busy) => {
            return Err(Problem::new(Code::Busy, "Too many logs are being read at once; try again."));
        }
        Log::None(_) => Vec::new(),
    };
    let text = &text[text.len().saturating_sub(MOST_BYTES)..];
    let mut lines: Vec<String> = String::from_utf8_lossy(text).lines().map(str::to_owned).collect();
    if let Some(why) = FailureReason::of(batch) {
        lines.extend(format!("sparkgate: {} is {}: {}", batch.id, batch.state, why.message).lines().map(str::to_owned));
    }
    lines.drain(..lines.len().saturating_sub(most));
    Ok(lines)
}

/// Returns the position of the first wanted line, and the wanted lines: `size` from `from`, or the last ones if `from` is negative;
/// all if `size` is negative.
pub(super) fn part(lines: &[String], from: i64, size: i64) -> (usize, &[String]) {
    let size = usize::try_from(size).unwrap_or(lines.len());
    let from = usize::try_from(from).unwrap_or_else(|_| lines.len().saturating_sub(size));
    let until = from.saturating_add(size).min(lines.len());
    (from, lines.get(from..until).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_begins_where_it_should_or_ends_with_the_last_line() {
        let lines = ["a", "b", "c"].map(str::to_owned);
        for (from, size, first, text) in [
            (0, 2, 0, "ab"),
            (2, 100, 2, "c"),
            (3, 100, 3, ""),
            (100, 100, 100, ""),
            (-1, 2, 1, "bc"),
            (-1, 100, 0, "abc"),
            (-1, -1, 0, "abc"),
            (1, -1, 1, "bc"),
            (0, 0, 0, ""),
            (i64::MAX, i64::MAX, usize::MAX >> 1, ""),
        ] {
            let (at, part) = part(&lines, from, size);
            assert_eq!((at, part.concat().as_str()), (first, text), "from {from}, {size} lines");
        }
    }
}
