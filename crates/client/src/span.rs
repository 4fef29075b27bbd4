//! Durations and moments in human-readable form: `1h30m`, `2d 4h`.

use std::{str::FromStr, time::Duration};

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};

use sparkgate_submission::parse_duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A duration in whole seconds, written as `90s`, `10m`, `1h30m` or `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span(u64);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a duration such as 90s, 10m, 1h30m or 7d")]
pub(super) struct NoSpan;

impl Span {
    pub(super) fn seconds(self) -> u64 {
        self.0
    }

    pub(super) fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl FromStr for Span {
    type Err = NoSpan;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_duration(text).map(|time| Self(time.as_secs())).ok_or(NoSpan)
    }
}

/// A moment: a time (RFC 3339), the begin of a day in UTC, or a duration before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    At(DateTime<Utc>),
    Ago(Span),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a duration before now such as 10m or 2d, or a date such as 2026-01-02 or 2026-01-02T03:04:05Z")]
pub(super) struct NoMoment;

impl Moment {
    /// Formats the moment for the API.
    pub(super) fn rfc3339(self, now: DateTime<Utc>) -> String {
        let at = match self {
            Self::At(at) => at,
            Self::Ago(span) => {
                let before = TimeDelta::try_seconds(span.0.try_into().unwrap_or(i64::MAX));
                before.and_then(|before| now.checked_sub_signed(before)).unwrap_or(DateTime::UNIX_EPOCH)
            }
        };
        at.to_rfc3339_opts(SecondsFormat::Millis, true)
    }
}

impl FromStr for Moment {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(span) = text.parse() {
            return Ok(Self::Ago(span));
        }
        let text = text.trim();
        if let Ok(day) = text.parse::<NaiveDate>() {
            return Ok(Self::At(day.and_time(NaiveTime::MIN).and_utc()));
        }
        let at = DateTime::parse_from_rfc3339(text).map_err(|_| NoMoment)?;
        Ok(Self::At(at.with_timezone(&Utc)))
    }
}

/// Formats a duration with at most two units: `45s`, `3m 12s`, `2h`, `3d 4h`.
pub(super) fn in_words(seconds: u64) -> String {
    let parts = match seconds {
        0..MINUTE => [(seconds, "s"), (0, "")],
        MINUTE..HOUR => [(seconds / MINUTE, "m"), (seconds % MINUTE, "s")],
        HOUR..DAY => [(seconds / HOUR, "h"), (seconds % HOUR / MINUTE, "m")],
        _ => [(seconds / DAY, "d"), (seconds % DAY / HOUR, "h")],
    };
    match parts {
        [(first, unit), (0, _)] => format!("{first}{unit}"),
        [(first, unit), (second, smaller)] => format!("{first}{unit} {second}{smaller}"),
    }
}

/// Formats the duration between two moments. Clocks differ, so a negative duration is shown as 0.
pub(super) fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> String {
    in_words(u64::try_from((to - from).num_seconds()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_is_a_date_or_a_duration_ago() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let read = |text: &str| text.parse::<Moment>().map(|moment| moment.rfc3339(now));
        assert_eq!(read("1h"), Ok("2027-01-15T07:00:00.000Z".to_owned()));
        assert_eq!(read("2026-01-02T03:04:05+01:00"), Ok("2026-01-02T02:04:05.000Z".to_owned()));
        assert_eq!(read("2026-01-02"), Ok("2026-01-02T00:00:00.000Z".to_owned()));
        assert_eq!(read("yesterday"), Err(NoMoment));
    }

    #[test]
    fn duration_is_printed_with_two_units_at_most() {
        for (seconds, words) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (192, "3m 12s"), (7200, "2h"), (7261, "2h 1m"), (273_600, "3d 4h")]
        {
            assert_eq!(in_words(seconds), words);
        }
        let at = DateTime::UNIX_EPOCH;
        assert_eq!(between(at + TimeDelta::seconds(5), at), "0s", "a clock that is behind");
    }
}
