//! `SparkConf`: properties by key, read the way Spark reads its typed entries.

mod fault;
mod value;

use std::{collections::BTreeMap, ops::Bound};

use super::{refusal::Refusal, version::SparkVersion};
use fault::Fault;
pub(crate) use value::double_text;
pub use value::{bytes, double, mib};

/// All properties of one application. Keys begin with `spark.`; values are strings, read as that release of Spark reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SparkConf {
    properties: BTreeMap<String, String>,
    version: SparkVersion,
}

impl SparkConf {
    pub(crate) fn new(properties: BTreeMap<String, String>, version: SparkVersion) -> Self {
        Self { properties, version }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    /// Returns the value of the first key that is set, as Spark reads an entry with fallbacks.
    pub(crate) fn first(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.get(key))
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.properties.contains_key(key)
    }

    pub(crate) fn set(&mut self, key: &str, value: impl Into<String>) {
        self.properties.insert(key.to_owned(), value.into());
    }

    pub(crate) fn set_if_missing(&mut self, key: &str, value: impl FnOnce() -> String) {
        self.properties.entry(key.to_owned()).or_insert_with(value);
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.properties.remove(key);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.properties.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the family `<prefix>*`; the prefix is removed from the keys.
    pub(crate) fn with_prefix(&self, prefix: &str) -> BTreeMap<String, String> {
        // The keys are sorted, so those of a family are contiguous.
        let from = self.properties.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.map_while(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone()))).collect()
    }

    /// Reads a comma-separated list as `ConfigBuilder.toSequence` splits it: entries are trimmed, empty ones dropped.
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        let entries = self.get(key).unwrap_or_default().split(',').map(str::trim);
        entries.filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    }

    /// Reads a boolean, in upper or lower case.
    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>, Refusal> {
        self.typed(key, "boolean", |text| match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    /// Reads a 32-bit integer of a typed entry.
    pub(crate) fn int(&self, key: &str) -> Result<Option<i32>, Refusal> {
        self.typed(key, "int", |text| text.parse().ok())
    }

    /// Reads a 64-bit integer and checks the entry's own rule.
    pub(crate) fn long(&self, key: &str, passes: fn(i64) -> bool, rule: &str) -> Result<Option<i64>, Refusal> {
        let number: Option<i64> = self.typed(key, "long", |text| text.parse().ok())?;
        match number {
            Some(wrong) if !passes(wrong) => Err(self.fault(key, &wrong.to_string()).against_rule(rule)),
            number => Ok(number),
        }
    }

    /// Reads a port. Spark reads ports without their typed entries (`SparkConf.getInt`), hence the different message.
    pub(crate) fn port(&self, key: &str) -> Result<Option<i32>, Refusal> {
        let illegal = |text: &str| format!("Illegal value for config key {key}: For input string: \"{text}\"");
        let parse = |text: &str| text.parse().map_err(|_| Refusal::property(key, illegal(text)));
        self.get(key).map(parse).transpose()
    }

    /// Reads a memory factor and checks the entry's own rule.
    pub(crate) fn factor(&self, key: &str, passes: fn(f64) -> bool, rule: &str) -> Result<Option<f64>, Refusal> {
        let factor: Option<f64> = self.typed(key, "double", double)?;
        match factor {
            Some(wrong) if !passes(wrong) => Err(self.fault(key, &double_text(wrong)).against_rule(rule)),
            factor => Ok(factor),
        }
    }

    /// Reads a size in MiB; a number without a unit is in MiB.
    pub(crate) fn mib(&self, key: &str) -> Result<Option<i64>, Refusal> {
        let parse = |text| mib(text, self.version).ok_or_else(|| self.fault(key, text).not_a_size());
        self.get(key).map(parse).transpose()
    }

    /// Reads one of a fixed set of words, spelled exactly.
    pub(crate) fn one_of(&self, key: &str, words: &[&str]) -> Result<Option<&str>, Refusal> {
        match self.get(key) {
            Some(word) if !words.contains(&word) => Err(self.fault(key, word).not_an_option(words)),
            word => Ok(word),
        }
    }

    fn typed<T>(&self, key: &str, kind: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Refusal> {
        let parse = |text: &str| parse(text.trim()).ok_or_else(|| self.fault(key, text).type_mismatch(kind));
        self.get(key).map(parse).transpose()
    }

    fn fault<'a>(&self, key: &'a str, value: &'a str) -> Fault<'a> {
        Fault { key, value, version: self.version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_value_is_reported_with_the_message_of_the_release() {
        let conf = |version| {
            let properties = [("spark.b", "maybe"), ("spark.m", "1.5g"), ("spark.w", "x")];
            SparkConf::new(properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into(), version)
        };
        let (before, since) = (conf(SparkVersion::V4_0), conf(SparkVersion::V4_1));
        assert_eq!(before.boolean("spark.b").unwrap_err().reason, "spark.b should be boolean, but was maybe");
        let reason = since.boolean("spark.b").unwrap_err().reason;
        assert_eq!(
            reason,
            "The value 'maybe' in the config \"spark.b\" is invalid. It should be a/an 'boolean' value."
        );
        let reason = before.mib("spark.m").unwrap_err().reason;
        assert!(reason.ends_with("\nFractional values are not supported. Input was: 1.5"), "{reason}");
        let reason = before.one_of("spark.w", &["A", "B"]).unwrap_err().reason;
        assert_eq!(reason, "The value of spark.w should be one of A, B, but was x");
    }
}
