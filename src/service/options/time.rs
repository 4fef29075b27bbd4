//! Times as Spark writes them (`JavaUtils.timeStringAs`): a whole number and a unit, `10m`; seconds without one.

use std::time::Duration;

/// Ten years: a longer time is taken for a typing error.
const LONGEST: Duration = Duration::from_secs(3653 * 86400);

pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit.to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => 0,
    };
    let time = number.parse::<u64>().ok().filter(|_| seconds > 0).and_then(|number| number.checked_mul(seconds));
    let time = time.map(Duration::from_secs).filter(|time| *time <= LONGEST);
    time.ok_or_else(|| format!("{text:?} is not a time: a whole number with s, m, h or d behind it, such as 10m"))
}

/// Checks that a requested time is within the operator's limit.
pub(super) fn within(asked: Option<Duration>, cap: Option<Duration>) -> Result<(), String> {
    match (asked, cap) {
        (Some(asked), _) if asked > LONGEST => Err("longer than ten years".to_owned()),
        (Some(asked), Some(cap)) if asked > cap => {
            Err(format!("{} seconds are more than the {} that this gateway allows", asked.as_secs(), cap.as_secs()))
        }
        _ => Ok(()),
    }
}
