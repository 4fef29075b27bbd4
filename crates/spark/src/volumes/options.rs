//! The keys of one volume.

use std::{collections::BTreeMap, ops::Bound};

use crate::{refusal::Refusal, version::SparkVersion};

/// The minimum, in bytes, that Spark requires since 4.0 of a size without a unit.
const MIN_SIZE: i64 = 1024;

pub(super) struct VolumeOptions<'a> {
    /// All entries under the prefix; the prefix is removed from the keys.
    entries: &'a BTreeMap<String, String>,
    pub(super) version: SparkVersion,
    prefix: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
}

impl<'a> VolumeOptions<'a> {
    pub(super) fn new(
        entries: &'a BTreeMap<String, String>,
        version: SparkVersion,
        prefix: &'a str,
        kind: &'a str,
        name: &'a str,
    ) -> Self {
        Self { entries, version, prefix, kind, name }
    }

    /// Returns a key as Spark's messages name it: without the prefix.
    pub(super) fn short_key(&self, key: &str) -> String {
        format!("{}.{}.{key}", self.kind, self.name)
    }

    pub(super) fn refusal(&self, key: &str, reason: impl Into<String>) -> Refusal {
        Refusal::property(&format!("{}{}", self.prefix, self.short_key(key)), reason)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.entries.get(&self.short_key(key)).map(String::as_str)
    }

    pub(super) fn required(&self, key: &str) -> Result<String, Refusal> {
        let missing = || self.refusal(key, format!("{} is required for {}", self.short_key(key), self.kind));
        self.get(key).map(str::to_owned).ok_or_else(missing)
    }

    /// Reads a boolean, which is false if absent. As Scala's `toBoolean`, it ignores case and accepts no blanks.
    pub(super) fn boolean(&self, key: &str) -> Result<bool, Refusal> {
        match self.get(key).map(str::to_ascii_lowercase).as_deref() {
            Some("true") => Ok(true),
            Some("false") | None => Ok(false),
            Some(_) => Err(self.unreadable(key, "It should be true or false.")),
        }
    }

    /// Reads `options.sizeLimit`, a Kubernetes quantity. The API server checks what Spark doesn't.
    pub(super) fn size_limit(&self) -> Result<Option<String>, Refusal> {
        let key = "options.sizeLimit";
        let Some(size) = self.get(key) else { return Ok(None) };
        if self.version >= SparkVersion::V4_0 && size.chars().all(|c| c.is_ascii_digit()) {
            let bytes: i64 = size.parse().map_err(|_| self.unreadable(key, "It should be a size such as 5Gi."))?;
            if bytes < MIN_SIZE {
                let reason = format!("Volume size `{size}` is smaller than 1KiB. Missing units?");
                return Err(self.refusal(key, reason));
            }
        }
        Ok(Some(size.to_owned()))
    }

    /// Returns `label.*` or `annotation.*` without the family's name. As in Spark, the name is removed wherever it occurs in a
    /// key.
    pub(super) fn family(&self, family: &str) -> BTreeMap<String, String> {
        let prefix = self.short_key(family);
        let entries = self.entries.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        entries
            .take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(key, value)| (key.replace(&prefix, ""), value.clone()))
            .collect()
    }

    fn unreadable(&self, key: &str, hint: &str) -> Refusal {
        let value = self.get(key).unwrap_or_default();
        self.refusal(key, format!("For input string: \"{value}\". {hint}"))
    }
}
