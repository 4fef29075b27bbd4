//! The one notation of durations, in settings, options and the client: `90s`, `10m`, `1h30m`, `7d`.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Ten years: a longer duration is a typing error.
pub const LONGEST_DURATION: Duration = Duration::from_secs(3653 * DAY);

/// Parses whole numbers with units (`s` or `sec`, `m` or `min`, `h`, `d`) from the largest to the
/// smallest. `None` if the text is none, or means more than [`LONGEST_DURATION`].
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let mut rest = text.as_str();
    let (mut seconds, mut last) = (0_u64, u64::MAX);
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
        let unit = match unit.trim_end() {
            "s" | "sec" => 1,
            "m" | "min" => MINUTE,
            "h" => HOUR,
            "d" => DAY,
            _ => return None,
        };
        // `30m1h` and `1m1m` are mistakes too.
        if unit >= last {
            return None;
        }
        last = unit;
        seconds = number.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(seconds)?;
        rest = tail;
    }
    Some(Duration::from_secs(seconds)).filter(|time| last != u64::MAX && *time <= LONGEST_DURATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_units_in_descending_order() {
        for (text, seconds) in
            [("90s", 90), ("0s", 0), ("10min", 600), ("1H30m", 5400), ("7d", 604_800), (" 1d 2h ", 93_600)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for nonsense in [
            "",
            "10",
            "m",
            "-1m",
            "1.5h",
            "30m1h",
            "1m1m",
            "1w",
            "7 d",
            "7days",
            "never",
            "99999999999999999999s",
            "4000d",
        ] {
            assert_eq!(parse_duration(nonsense), None, "{nonsense}");
        }
    }
}
