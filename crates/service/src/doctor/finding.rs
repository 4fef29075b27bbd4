//! What a check of the doctor found.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

/// Clocks that are synchronized by NTP differ by less, and the time of a reply has whole seconds.
const NEAR: TimeDelta = TimeDelta::seconds(5);

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    pub level: Level,
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// The account lacks a right that the check needs and the gateway doesn't.
    Skipped,
    /// The gateway works, but not as well, or not as safely, as it could.
    Warning,
    /// The gateway doesn't work, or can't keep what it promises.
    Failure,
}

impl Finding {
    pub fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), remedy: None }
    }

    pub fn skipped(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Skipped, message: message.into(), remedy: None }
    }

    pub fn warning(check: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Warning, message: message.into(), remedy: Some(remedy.into()) }
    }

    pub fn failure(check: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Failure, message: message.into(), remedy: Some(remedy.into()) }
    }
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

/// Compares a clock with this machine's.
pub(super) fn clocks(
    check: &'static str,
    whose: &str,
    there: DateTime<Utc>,
    here: DateTime<Utc>,
    far: TimeDelta,
) -> Finding {
    let ahead = there - here;
    let seconds = ahead.as_seconds_f64();
    if ahead.abs() < NEAR {
        return Finding::ok(check, format!("the clock of {whose} and this machine's agree"));
    }
    let text = match ahead > TimeDelta::zero() {
        true => format!("the clock of {whose} is {seconds:.0} s ahead of this machine's"),
        false => format!("the clock of {whose} is {:.0} s behind this machine's", -seconds),
    };
    let remedy = "synchronize both machines by NTP";
    if ahead.abs() < far { Finding::warning(check, text, remedy) } else { Finding::failure(check, text, remedy) }
}
