//! The Spark release whose behaviour the gateway reproduces.

use std::{fmt, str::FromStr};

/// A Spark release such as `4.3.0`. Its minor release (`4.3`) determines steps and defaults; the whole text is the
/// `spark-version` label and `serverSparkVersion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SparkVersion {
    pub major: u16,
    pub minor: u16,
    pub patch: u16,
}

impl SparkVersion {
    pub const V3_5: SparkVersion = SparkVersion { major: 3, minor: 5, patch: 0 };
    pub const V4_0: SparkVersion = SparkVersion { major: 4, minor: 0, patch: 0 };
    pub const V4_1: SparkVersion = SparkVersion { major: 4, minor: 1, patch: 0 };
    pub const V4_2: SparkVersion = SparkVersion { major: 4, minor: 2, patch: 0 };
    pub const V4_3: SparkVersion = SparkVersion { major: 4, minor: 3, patch: 0 };
}

impl SparkVersion {
    /// Returns the line that the release belongs to.
    pub fn line(self) -> SparkLine {
        SparkLine { major: self.major, minor: self.minor }
    }

    /// Returns whether a text names this release: `4.1.2`, or its line, `4.1`.
    pub fn is_named(self, text: &str) -> bool {
        let rest = text.strip_prefix(self.line().to_string().as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.') == Some(self.patch.to_string().as_str()))
    }
}

/// A line of Spark releases, such as `4.3`: a minor release with its patch releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SparkLine {
    pub major: u16,
    pub minor: u16,
}

impl fmt::Display for SparkLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for SparkVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The text is not a Spark release that the gateway supports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Spark version that Sparkgate knows: give 3.5.x, 4.0.x, 4.1.x, 4.2.x or 4.3.x")]
pub struct UnknownSparkVersion(pub String);

impl FromStr for SparkVersion {
    type Err = UnknownSparkVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownSparkVersion(text.to_owned());
        let parts: Vec<u16> = text.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| unknown())?;
        match parts[..] {
            [major, minor, patch] if matches!((major, minor), (3, 5) | (4, 0..=3)) => Ok(Self { major, minor, patch }),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_named_by_its_version_or_its_line() {
        let version: SparkVersion = "4.1.2".parse().unwrap();
        for text in ["4.1.2", "4.1"] {
            assert!(version.is_named(text), "{text}");
        }
        for text in ["4.1.20", "4.1.3", "4.1.", "4.10", "4", "4.2", "4.1.2.0", "04.1", ""] {
            assert!(!version.is_named(text), "{text}");
        }
    }
}
