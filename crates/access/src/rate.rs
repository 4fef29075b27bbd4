//! The rates of the front door: `20/s`, `10/min`, `64MiB/s`.

use std::{num::NonZeroU64, time::Duration};

use thiserror::Error;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// An amount for each period: requests, or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub amount: NonZeroU64,
    pub period: Duration,
}

impl Rate {
    /// Parses a number of requests: `20/s`, `10/min`, `5/h`.
    ///
    /// # Errors
    /// The text has no such form, or the number is zero.
    pub fn parse(text: &str) -> Result<Self, InvalidRate> {
        let (amount, period) = parts(text).ok_or(InvalidRate::Requests)?;
        let amount = number(amount).and_then(NonZeroU64::new).ok_or(InvalidRate::Requests)?;
        Ok(Self { amount, period })
    }

    /// Parses a number of bytes with a unit: `64MiB/s`.
    ///
    /// # Errors
    /// The text has no such form, or the number is zero.
    pub fn parse_bytes(text: &str) -> Result<Self, InvalidRate> {
        let bytes = || {
            let (amount, period) = parts(text)?;
            let (amount, unit) = amount.split_at(amount.find(|c: char| !c.is_ascii_digit())?);
            let unit = match unit.trim_start() {
                "KiB" => 1 << 10,
                "MiB" => 1 << 20,
                "GiB" => 1 << 30,
                _ => return None,
            };
            let amount = NonZeroU64::new(number(amount)?.checked_mul(unit)?)?;
            Some(Self { amount, period })
        };
        bytes().ok_or(InvalidRate::Bytes)
    }

    const fn new(amount: u64, period: Duration) -> Self {
        Self { amount: NonZeroU64::MIN.saturating_add(amount - 1), period }
    }
}

fn parts(text: &str) -> Option<(&str, Duration)> {
    let (amount, period) = text.split_once('/')?;
    let period = match period.trim() {
        "s" | "sec" => SECOND,
        "m" | "min" => MINUTE,
        "h" => HOUR,
        _ => return None,
    };
    Some((amount.trim(), period))
}

/// Parses digits only: `+5` is no number here.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A text is no rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidRate {
    #[error("a rate is a number above 0 and a period: `20/s`, `10/min`, `5/h`")]
    Requests,
    #[error("a rate of bytes is a number above 0, KiB, MiB or GiB, and a period: `64MiB/s`")]
    Bytes,
}

/// The rates that the gateway allows at its front door, by principal; failed logins by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    pub writes: Rate,
    pub reads: Rate,
    pub bytes: Rate,
    pub failed_logins: Rate,
}

/// Returns what applies if the access file sets no limits.
impl Default for Rates {
    fn default() -> Self {
        Self {
            writes: Rate::new(20, SECOND),
            reads: Rate::new(200, SECOND),
            bytes: Rate::new(64 << 20, SECOND),
            failed_logins: Rate::new(10, MINUTE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_and_a_period() {
        for (text, amount, period) in
            [("20/s", 20, SECOND), ("10/min", 10, MINUTE), ("1 / h", 1, HOUR), ("3/m", 3, MINUTE), ("7/sec", 7, SECOND)]
        {
            assert_eq!(Rate::parse(text), Ok(Rate::new(amount, period)), "{text}");
        }
        for text in ["", "20", "/s", "0/s", "-1/s", "+1/s", "1.5/s", "1/d", "1/s/s", "1MiB/s", "99999999999999999999/s"]
        {
            assert_eq!(Rate::parse(text), Err(InvalidRate::Requests), "{text}");
        }
    }

    #[test]
    fn a_rate_of_bytes_has_a_unit() {
        assert_eq!(Rate::parse_bytes("64MiB/s"), Ok(Rates::default().bytes));
        assert_eq!(Rate::parse_bytes("1 GiB/min"), Ok(Rate::new(1 << 30, MINUTE)));
        for text in ["64/s", "MiB/s", "0KiB/s", "64MB/s", "64mib/s", "64MiB", "99999999999GiB/s"] {
            assert_eq!(Rate::parse_bytes(text), Err(InvalidRate::Bytes), "{text}");
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_documentation() {
        let rates = Rates::default();
        assert_eq!(Ok(rates.writes), Rate::parse("20/s"));
        assert_eq!(Ok(rates.reads), Rate::parse("200/s"));
        assert_eq!(Ok(rates.failed_logins), Rate::parse("10/min"));
    }
}
