//! Durations in settings.

use std::{fmt, str::FromStr, time::Duration};

use sparkgate_submission::parse_duration;

/// A duration, or `off` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeOrOff(pub(super) Option<Duration>);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a duration of at most ten years such as 7d, 12h or 1h30m, or off")]
pub(super) struct NoTime;

const DAY: u64 = 24 * 3600;

impl TimeOrOff {
    pub(super) const fn days(days: u64) -> Self {
        Self(Some(Duration::from_secs(days * DAY)))
    }
}

impl fmt::Display for TimeOrOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.map(|time| time.as_secs()) {
            None => f.write_str("off"),
            Some(seconds) if seconds % DAY == 0 => write!(f, "{}d", seconds / DAY),
            Some(seconds) => write!(f, "{seconds}s"),
        }
    }
}

impl FromStr for TimeOrOff {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self(None));
        }
        parse_duration(text).map(|time| Self(Some(time))).ok_or(NoTime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_needs_a_unit_and_off_means_none() {
        for (text, seconds) in
            [("7d", Some(604_800)), ("12h", Some(43_200)), ("30m", Some(1800)), (" 0s ", Some(0)), ("off", None)]
        {
            assert_eq!(text.parse(), Ok(TimeOrOff(seconds.map(Duration::from_secs))), "{text}");
        }
        for nonsense in ["", "7", "never", "4000d"] {
            assert_eq!(nonsense.parse::<TimeOrOff>(), Err(NoTime), "{nonsense}");
        }
    }
}
