//! Spark's messages for a value that an entry doesn't accept. They changed in 4.1 (error class `INVALID_CONF_VALUE`).

use crate::{refusal::Refusal, version::SparkVersion};

/// An invalid value and its key.
pub(super) struct Fault<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    pub(super) version: SparkVersion,
}

impl Fault<'_> {
    /// Refuses a value of the wrong type; `kind` is Spark's name for the type.
    pub(super) fn type_mismatch(&self, kind: &str) -> Refusal {
        let Self { key, value, .. } = self;
        self.refusal(format!("It should be a/an '{kind}' value."), format!("{key} should be {kind}, but was {value}"))
    }

    /// Refuses a value that is not a size.
    pub(super) fn not_a_size(&self) -> Refusal {
        let units = "Size must be specified as bytes (b), kibibytes (k), mebibytes (m), gibibytes (g), tebibytes (t), or \
                     pebibytes(p). E.g. 50b, 100k, or 250m.";
        let lower = self.value.trim().to_lowercase();
        let number = lower.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let problem = match number.split_once('.') {
            _ if is_number(number) => format!("Invalid suffix: \"{}\"", &lower[number.len()..]),
            Some((whole, part)) if is_number(whole) && is_number(part) => {
                format!("Fractional values are not supported. Input was: {number}")
            }
            _ => format!("Failed to parse byte string: {}", self.value),
        };
        self.refusal("It should be a/an 'bytes in MiB' value.".to_owned(), format!("{units}\n{problem}"))
    }

    /// Refuses a value that has the right type but breaks the entry's own rule.
    pub(super) fn against_rule(&self, rule: &str) -> Refusal {
        let Self { key, value, .. } = self;
        self.refusal(rule.to_owned(), format!("'{value}' in {key} is invalid. {rule}"))
    }

    /// Refuses a value that is none of the words that the entry accepts.
    pub(super) fn not_an_option(&self, words: &[&str]) -> Refusal {
        let Self { key, value, .. } = self;
        let words = words.join(", ");
        let before = format!("The value of {key} should be one of {words}, but was {value}");
        self.refusal(format!("It should be one of '{words}'."), before)
    }

    fn refusal(&self, rule: String, before_4_1: String) -> Refusal {
        let Self { key, value, version } = self;
        let since = || format!("The value '{value}' in the config \"{key}\" is invalid. {rule}");
        Refusal::property(key, if *version < SparkVersion::V4_1 { before_4_1 } else { since() })
    }
}
