//! How much of a driver's log is kept.

use std::{fmt, str::FromStr};

/// A size, or `off` for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) struct KeptLog(usize);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number followed by KiB or MiB, from 1KiB to 4MiB, such as 256KiB, or off")]
pub(in crate::app) struct NoSize;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The largest size. It is limited because several logs are held in memory at once.
const LARGEST: usize = 4 * MIB;

impl KeptLog {
    /// Returns the size in bytes, 0 for `off`.
    pub(in crate::app) fn bytes(self) -> usize {
        self.0
    }
}

impl Default for KeptLog {
    fn default() -> Self {
        Self(256 * KIB)
    }
}

impl fmt::Display for KeptLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("off"),
            bytes if bytes % MIB == 0 => write!(f, "{}MiB", bytes / MIB),
            bytes => write!(f, "{}KiB", bytes / KIB),
        }
    }
}

impl FromStr for KeptLog {
    type Err = NoSize;

    fn from_str(text: &str) -> Result<Self, NoSize> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self(0));
        }
        let (number, unit) = match (text.strip_suffix("KiB"), text.strip_suffix("MiB")) {
            (Some(number), _) => (number, KIB),
            (_, Some(number)) => (number, MIB),
            _ => return Err(NoSize),
        };
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let bytes = number.parse::<usize>().ok().filter(|_| digits).and_then(|number| number.checked_mul(unit));
        bytes.filter(|bytes| (1..=LARGEST).contains(bytes)).map(Self).ok_or(NoSize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_needs_a_unit_and_has_a_maximum() {
        for (text, bytes) in [("256KiB", 256 * KIB), (" 4MiB", LARGEST), ("1KiB", KIB), ("off", 0)] {
            assert_eq!(text.parse(), Ok(KeptLog(bytes)), "{text}");
            assert_eq!(KeptLog(bytes).to_string(), text.trim());
        }
        for nonsense in ["", "0KiB", "256", "256KB", "-1KiB", "+1KiB", "5MiB", "4097KiB", "99999999999999999999MiB"] {
            assert_eq!(nonsense.parse::<KeptLog>(), Err(NoSize), "{nonsense}");
        }
    }
}
