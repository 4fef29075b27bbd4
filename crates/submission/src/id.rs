//! The id of a submission, in the format that Spark's clients and Airflow expect.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};

/// `driver-<yyyyMMddHHmmss>-<nnnn…>`: a UTC time and a sequence number. Digits and hyphens only, because Airflow finds the id
/// in a log with the pattern `driver-[0-9\-]+`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubmissionId(String);

/// The text is no valid submission id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a submission id looks like driver-20260102030405-0001: digits and hyphens after `driver-`")]
pub struct InvalidSubmissionId;

impl SubmissionId {
    /// Longer than any id that we allocate; limits the size of look-ups.
    const MAX_LENGTH: usize = 63;

    /// Returns the id that was allocated at a time, with `number` in at least four digits.
    pub fn new(at: DateTime<Utc>, number: i64) -> Self {
        Self(format!("driver-{}-{number:04}", at.format("%Y%m%d%H%M%S")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SubmissionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SubmissionId {
    type Err = InvalidSubmissionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("driver-").ok_or(InvalidSubmissionId)?;
        let shaped = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        if shaped && text.len() <= Self::MAX_LENGTH { Ok(Self(text.to_owned())) } else { Err(InvalidSubmissionId) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_ids_are_parsed() {
        let id: SubmissionId = "driver-20261121041000-0001".parse().unwrap();
        assert_eq!(id.to_string(), "driver-20261121041000-0001");
        let long = format!("driver-{}", "1".repeat(60));
        for bad in ["", "driver-", "driver-1a", "Driver-1", "driver-1\0", "driver-1'; --", "spark:pod", &long] {
            assert_eq!(bad.parse::<SubmissionId>(), Err(InvalidSubmissionId), "{bad}");
        }
    }
}
