//! How often a call is repeated, and after how long. Every call of this client may be: reads and kills are idempotent, and
//! a submission carries an idempotency key.

use std::time::Duration;

/// A try that brought no answer to work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Miss {
    /// Nobody took the connection, so nobody is there, or one is just being started again.
    NoConnection,
    /// The connection broke, or nothing came in time.
    Broken,
    /// 429, 502, 503 or 504, with what `Retry-After` asks for.
    Busy(Option<Duration>),
}

/// The longest that a server's `Retry-After` is waited for.
const LONGEST: Duration = Duration::from_secs(30);

/// The pause before the next try after `misses` of them (1 for the first), or `None` to give up.
pub(super) fn pause(misses: u32, miss: Miss) -> Option<Duration> {
    let (most, first) = match miss {
        Miss::NoConnection => (2, Duration::from_millis(200)),
        Miss::Broken | Miss::Busy(_) => (4, Duration::from_millis(400)),
    };
    if misses > most {
        return None;
    }
    match miss {
        Miss::Busy(Some(asked)) => Some(asked.min(LONGEST)),
        _ => Some(first * 2_u32.saturating_pow(misses.saturating_sub(1))),
    }
}

/// `Retry-After` in seconds. (As a date, which the gateway never sends, it is passed over.)
pub(super) fn retry_after(value: Option<&str>) -> Option<Duration> {
    value?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_and_a_server_is_heard() {
        let millis = |miss| (1..).map_while(|misses| pause(misses, miss)).map(|p| p.as_millis()).collect::<Vec<_>>();
        assert_eq!(millis(Miss::NoConnection), [200, 400]);
        assert_eq!(millis(Miss::Broken), [400, 800, 1600, 3200]);
        assert_eq!(millis(Miss::Busy(retry_after(Some("3")))), [3000; 4]);
        assert_eq!(pause(1, Miss::Busy(retry_after(Some("86400")))), Some(LONGEST));
        assert_eq!(retry_after(Some("Wed, 21 Oct 2026 07:28:00 GMT")), None);
    }
}
