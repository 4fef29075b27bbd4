//! Uploaded files.

use std::{fmt, str::FromStr};

use anyhow::Context;
use clap::Args;

use super::time_or_off::TimeOrOff;
use sparkgate_files::FileStore;
use sparkgate_service::{FileSettings, Pace};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Uploaded files")]
pub(in crate::app) struct Files {
    /// Where uploaded files are kept: a directory that all replicas share, or the URL of a store such as <s3://bucket/prefix>, gs://…,
    /// az://…, with credentials in the variables of these stores (docs/use/files.md) [default: no files can be uploaded].
    #[arg(long, env = "SPARKGATE_FILES_URL", value_name = "DIR|URL", requires = "files_base_url")]
    files_url: Option<String>,
    /// URL of the gateway for drivers and executors, which fetch their files there, such as <http://sparkgate.sparkgate.svc:6066>.
    #[arg(long, env = "SPARKGATE_FILES_BASE_URL", value_name = "URL", value_parser = base_url)]
    files_base_url: Option<String>,
    /// URL of the store for drivers and executors, which then read their files there with their own credentials, such as
    /// <s3a://bucket/prefix>, gs://…, abfss://… [default: they fetch them from the gateway].
    #[arg(long, env = "SPARKGATE_FILES_DRIVER_URL", value_name = "URL", value_parser = driver_url, requires = "files_url")]
    files_driver_url: Option<String>,
    /// Maximum size of an uploaded file, such as 500MiB or 5GiB.
    #[arg(long, env = "SPARKGATE_MAX_FILE_SIZE", default_value_t = Size::gib(5), value_name = "SIZE")]
    max_file_size: Size,
    /// How long an uploaded file is kept that no submission uses: a duration, or `off` to keep it for ever.
    #[arg(long, env = "SPARKGATE_FILE_TTL", default_value_t = TimeOrOff::days(7), value_name = "TIME|off")]
    file_ttl: TimeOrOff,
}

impl Files {
    /// Opens the store of files, if there is one.
    ///
    /// # Errors
    /// A setting or the directory can't be used.
    pub(in crate::app) fn open(&self) -> anyhow::Result<Option<(FileStore, FileSettings)>> {
        let (Some(url), Some(base_url)) = (&self.files_url, &self.files_base_url) else { return Ok(None) };
        let store = FileStore::open(url).context("--files-url")?;
        let settings = FileSettings {
            base_url: base_url.clone(),
            driver_url: self.files_driver_url.clone(),
            largest: self.max_file_size.0,
            part: FileSettings::PART,
            unused_ttl: self.file_ttl.0,
            patience: FileSettings::PATIENCE,
            pace: Pace::SLOWEST,
        };
        Ok(Some((store, settings)))
    }
}

/// A URL is written into files of properties, so it has no character with a meaning there.
fn base_url(text: &str) -> Result<String, &'static str> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let is_url = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && rest.chars().all(is_plain));
    is_url
        .then(|| text.trim_end_matches('/').to_owned())
        .ok_or("expected http://host:port or https://host, with or without a path")
}

/// Returns whether a character of a URL has no meaning in a file of properties.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | ':' | '/' | '[' | ']')
}

/// The URL of a store in the words of Hadoop: `abfss://container@account.dfs.core.windows.net/prefix` has an account, too.
fn driver_url(text: &str) -> Result<String, &'static str> {
    let is_scheme = |scheme: &str| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_rest =
        |rest: &str| !rest.is_empty() && !rest.starts_with('/') && rest.chars().all(|c| is_plain(c) || c == '@');
    let parts = text.split_once("://").filter(|(scheme, rest)| is_scheme(scheme) && is_rest(rest));
    // An object of the same name in another place is no use.
    let is_store = parts.is_some_and(|(scheme, _)| !["http", "https", "file", "local"].contains(&scheme));
    is_store
        .then(|| text.trim_end_matches('/').to_owned())
        .ok_or("expected the URL of the store as drivers read it, such as s3a://bucket/prefix")
}

/// The size of a file or of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(u64);

impl Size {
    pub(super) const fn gib(count: u64) -> Self {
        Self(count << 30)
    }

    pub(super) fn bytes(self) -> u64 {
        self.0
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number followed by KiB, MiB or GiB, such as 500MiB")]
pub(super) struct NoSize;

const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, bytes) = UNITS.into_iter().find(|(_, bytes)| self.0.is_multiple_of(*bytes)).unwrap_or(("", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

impl FromStr for Size {
    type Err = NoSize;

    fn from_str(text: &str) -> Result<Self, NoSize> {
        let text = text.trim();
        let (number, unit) =
            UNITS.into_iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, bytes))).ok_or(NoSize)?;
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let bytes = number.parse::<u64>().ok().filter(|_| digits).and_then(|number| number.checked_mul(unit));
        bytes.filter(|bytes| *bytes > 0 && i64::try_from(*bytes).is_ok()).map(Self).ok_or(NoSize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_needs_a_unit() {
        for (text, bytes) in [("5GiB", 5 << 30), ("500MiB", 500 << 20), ("1KiB", 1 << 10)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
            assert_eq!(Size(bytes).to_string(), text);
        }
        for nonsense in ["", "5", "5GB", "-1GiB", "0KiB", "+1KiB", "99999999999999999999GiB", "9999999999GiB", "off"] {
            assert_eq!(nonsense.parse::<Size>(), Err(NoSize), "{nonsense}");
        }
    }

    #[test]
    fn driver_url_is_that_of_a_store() {
        for url in ["s3a://bucket", "s3a://bucket/a/b", "gs://b/p", "abfss://c@a.dfs.core.windows.net/p"] {
            assert_eq!(driver_url(url).as_deref(), Ok(url));
        }
        assert_eq!(driver_url("s3a://bucket/").as_deref(), Ok("s3a://bucket"));
        for bad in
            ["s3a", "s3a://", "s3a:///x", "http://gateway", "file:///x", "local:///x", "s3a://b?x", "s3a://a b", ""]
        {
            assert!(driver_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn base_url_can_be_written_into_properties() {
        assert_eq!(base_url("http://gateway:6066/").as_deref(), Ok("http://gateway:6066"));
        assert_eq!(base_url("https://[::1]/spark").as_deref(), Ok("https://[::1]/spark"));
        for bad in
            ["gateway:6066", "http://", "http:///x", "s3://b", "http://a?b", "http://a#b", "http://u@h", "http://a b"]
        {
            assert!(base_url(bad).is_err(), "{bad}");
        }
    }
}
