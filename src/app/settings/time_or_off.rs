//! Durations in settings.

use std::{fmt, str::FromStr, time::Duration};

/// A duration, or `off` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeOrOff(pub(super) Option<Duration>);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number followed by d, h, m or s, at most a century, such as 7d or 12h, or off")]
pub(super) struct NoTime;

/// A century. A longer duration is a mistake, and Postgres' dates have a maximum.
const LONGEST: u64 = 36525 * DAY;
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
        let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or(NoTime)?;
        let (number, unit) = text.split_at(digits);
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => DAY,
            _ => return Err(NoTime),
        };
        let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or(NoTime)?;
        if seconds > LONGEST { Err(NoTime) } else { Ok(Self(Some(Duration::from_secs(seconds)))) }
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
        for nonsense in
            ["", "7", "d", "-1d", "1.5h", "7 d", "7days", "1d12h", "never", "99999999999999999999d", "200000d"]
        {
            assert_eq!(nonsense.parse::<TimeOrOff>(), Err(NoTime), "{nonsense}");
        }
    }
}
