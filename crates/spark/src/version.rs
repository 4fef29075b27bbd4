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
