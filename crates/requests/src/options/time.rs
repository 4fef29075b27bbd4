//! Durations as Spark writes them (`JavaUtils.timeStringAs`): `10m`, or seconds without a unit.

use std::time::Duration;

use sparkgate_submission::{LONGEST_DURATION, parse_duration};

pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let plain =
        text.parse().ok().filter(|_| is_plain).map(Duration::from_secs).filter(|time| *time <= LONGEST_DURATION);
    let time = plain.or_else(|| parse_duration(text));
    time.ok_or_else(|| format!("{text:?} is not a time: a whole number with s, m, h or d behind it, such as 10m"))
}

/// Checks that a requested time is within the operator's limit.
pub(super) fn within(asked: Option<Duration>, cap: Option<Duration>) -> Result<(), String> {
    match (asked, cap) {
        (Some(asked), _) if asked > LONGEST_DURATION => Err("longer than ten years".to_owned()),
        (Some(asked), Some(cap)) if asked > cap => {
            Err(format!("{} seconds are more than the {} that this gateway allows", asked.as_secs(), cap.as_secs()))
        }
        _ => Ok(()),
    }
}
