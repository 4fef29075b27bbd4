//! The number of retries of a call and the pauses between them. Nearly every call of this client may be retried: reads and kills
//! are idempotent, and a submission carries an idempotency key.

use std::time::Duration;

/// The kind of failure of a try that may be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Miss {
    /// No connection could be made: no gateway runs there, or it is being restarted.
    NoConnection,
    /// The connection broke, or there was no response in time.
    Broken,
    /// Status 429, 502, 503 or 504, with the value of `Retry-After`.
    Busy(Option<Duration>),
}

/// The upper bound for a server's `Retry-After`.
const LONGEST: Duration = Duration::from_secs(30);

/// The longest pause while a gateway restarts.
const WHILE_RESTARTING: Duration = Duration::from_secs(5);
/// The number of retries while it does: their pauses are half a minute together.
const RETRIES_WHILE_RESTARTING: u32 = 9;

/// Returns the pause before the next try after `misses` failed ones (1 after the first), or `None` to give up. A patient call waits for a
/// gateway that restarts.
pub(super) fn pause(misses: u32, miss: Miss, is_patient: bool) -> Option<Duration> {
    let (most, first) = match miss {
        _ if is_patient => (RETRIES_WHILE_RESTARTING, Duration::from_millis(200)),
        Miss::NoConnection => (2, Duration::from_millis(200)),
        Miss::Broken | Miss::Busy(_) => (4, Duration::from_millis(400)),
    };
    if misses > most {
        return None;
    }
    match miss {
        Miss::Busy(Some(asked)) => Some(asked.min(LONGEST)),
        _ => {
            let pause = first * 2_u32.saturating_pow(misses.saturating_sub(1));
            Some(if is_patient { pause.min(WHILE_RESTARTING) } else { pause })
        }
    }
}

/// Parses `Retry-After` in seconds. A date, which the gateway never sends, is ignored.
pub(super) fn retry_after(value: Option<&str>) -> Option<Duration> {
    value?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_number_of_retries_and_honour_retry_after() {
        let millis =
            |miss| (1..).map_while(|misses| pause(misses, miss, false)).map(|p| p.as_millis()).collect::<Vec<_>>();
        assert_eq!(millis(Miss::NoConnection), [200, 400]);
        assert_eq!(millis(Miss::Broken), [400, 800, 1600, 3200]);
        assert_eq!(millis(Miss::Busy(retry_after(Some("3")))), [3000; 4]);
        assert_eq!(pause(1, Miss::Busy(retry_after(Some("86400"))), false), Some(LONGEST));
        let patient: Vec<_> = (1..).map_while(|misses| pause(misses, Miss::NoConnection, true)).collect();
        assert!((25..=35).contains(&patient.iter().sum::<Duration>().as_secs()), "{patient:?}");
        assert_eq!(retry_after(Some("Wed, 21 Oct 2026 07:28:00 GMT")), None);
    }
}
