//! Kubernetes' rules for names, labels and keys, with its own messages.

use super::super::failure::Cause;
use super::super::resource::NameRule;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const DATA_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

impl NameRule {
    /// Returns the errors in a name.
    pub(in super::super) fn check(self, field: &str, name: &str) -> Vec<Cause> {
        let (limit, words, ok) = match self {
            Self::Subdomain => (253, SUBDOMAIN, name.split('.').all(is_label)),
            Self::Label => (63, LABEL, is_label(name)),
        };
        let mut causes = Vec::new();
        if name.len() > limit {
            causes.push(Cause::invalid(field, name, &format!("must be no more than {limit} characters")));
        }
        if !ok {
            causes.push(Cause::invalid(field, name, words));
        }
        causes
    }
}

fn is_label(name: &str) -> bool {
    is_framed(name, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), b"-")
}

/// Returns whether `name` begins and ends with a `letter`, and has only letters and `inner` in between.
fn is_framed(name: &str, letter: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = name.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(&first), Some(&last)) if letter(first) && letter(last))
        && bytes.iter().all(|&byte| letter(byte) || inner.contains(&byte))
}

fn is_word(name: &str) -> bool {
    is_framed(name, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// Returns the errors in the key of a label or an annotation: `[prefix/]name`.
pub(super) fn check_qualified(field: &str, key: &str) -> Vec<Cause> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut causes = Vec::new();
    if prefix.is_some_and(|prefix| !NameRule::Subdomain.check(field, prefix).is_empty()) {
        causes.push(Cause::invalid(field, key, &format!("prefix part {SUBDOMAIN}")));
    }
    if name.len() > 63 {
        causes.push(Cause::invalid(field, key, "name part must be no more than 63 characters"));
    }
    if !is_word(name) {
        causes.push(Cause::invalid(field, key, QUALIFIED));
    }
    causes
}

/// Returns the errors in a label's value.
pub(super) fn check_label_value(field: &str, value: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if value.len() > 63 {
        causes.push(Cause::invalid(field, value, "must be no more than 63 characters"));
    }
    if !value.is_empty() && !is_word(value) {
        causes.push(Cause::invalid(field, value, LABEL_VALUE));
    }
    causes
}

/// Returns the errors in a key of a `ConfigMap` or `Secret`.
pub(super) fn check_data_key(field: &str, key: &str) -> Vec<Cause> {
    let valid = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let mut causes = Vec::new();
    if key.len() > 253 {
        causes.push(Cause::invalid(field, key, "must be no more than 253 characters"));
    }
    if !valid {
        causes.push(Cause::invalid(field, key, DATA_KEY));
    } else if key == "." || key.starts_with("..") {
        causes.push(Cause::invalid(field, key, "must not be '.' and must not start with '..'"));
    }
    causes
}

/// Returns a name with a random suffix of letters and digits that can't form words.
pub(in super::super) fn generated(base: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut name: String = base.chars().take(58).collect();
    name.extend(uuid::Uuid::new_v4().as_bytes()[..5].iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % 27])));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_their_rule() {
        for (name, subdomain, label) in [
            ("a", true, true),
            ("0-a", true, true),
            ("a.b", true, false),
            ("a..b", false, false),
            ("-a", false, false),
            ("a-", false, false),
            ("A", false, false),
            ("a_b", false, false),
            ("ä", false, false),
            ("", false, false),
            (&"a".repeat(63), true, true),
            (&"a".repeat(64), true, false),
            (&"a".repeat(254), false, false),
        ] {
            assert_eq!(NameRule::Subdomain.check("f", name).is_empty(), subdomain, "{name}");
            assert_eq!(NameRule::Label.check("f", name).is_empty(), label, "{name}");
        }
    }

    #[test]
    fn generated_names_keep_the_base_within_the_limit() {
        assert!(generated("exec-").starts_with("exec-"));
        assert_eq!(generated(&"x".repeat(300)).len(), 63);
        assert_ne!(generated("a"), generated("a"));
    }
}
