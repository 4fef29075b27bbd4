//! The patterns of the access file: `nightly-*`.

use std::fmt;

use thiserror::Error;

/// The greatest length of a pattern in bytes.
const LONGEST: usize = 256;

/// A name, or a pattern of names: `*` stands for any characters except `/`, and for none.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The text is empty, too long, or has control characters.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        let fine = !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control);
        if fine { Ok(Self(text.to_owned())) } else { Err(InvalidPattern) }
    }

    /// Returns whether the whole name matches.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        // The last `*`, and the position up to which it matches. If what follows fails, it matches one byte more.
        let mut last: Option<(usize, usize)> = None;
        let (mut at, mut position) = (0, 0);
        while position < name.len() {
            if pattern.get(at) == Some(&b'*') {
                last = Some((at, position));
                at += 1;
            } else if pattern.get(at) == Some(&name[position]) {
                at += 1;
                position += 1;
            } else {
                match last {
                    Some((star, until)) if name[until] != b'/' => {
                        last = Some((star, until + 1));
                        (at, position) = (star + 1, until + 1);
                    }
                    _ => return false,
                }
            }
        }
        pattern[at..].iter().all(|byte| *byte == b'*')
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a pattern has 1 to {LONGEST} bytes and no control characters")]
pub struct InvalidPattern;

/// Names that a tenant may use: all of them, or those that match one of its patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patterns {
    #[default]
    All,
    Listed(Vec<Pattern>),
}

impl Patterns {
    /// Returns whether the name is one of them.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(patterns) => patterns.iter().any(|pattern| pattern.matches(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn a_star_stands_for_any_characters_of_one_segment() {
        for (pattern, name) in [
            ("small", "small"),
            ("nightly-*", "nightly-"),
            ("nightly-*", "nightly-7"),
            ("*", ""),
            ("*.conf", "a.conf.conf"),
            ("a*b*c", "a-b-b-c"),
            ("conf/*/x", "conf/analytics/x"),
            ("**", "ab"),
            ("é*", "éa"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("small", "smaller"),
            ("small", "Small"),
            ("nightly-*", "nightly"),
            ("conf/*", "conf/a/b"),
            ("*", "a/b"),
            ("**", "a/b"),
            ("a*b*c", "a-c-b"),
            ("a?", "ab"),
            ("[a]", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn an_absent_list_allows_all_names_and_an_empty_one_none() {
        assert!(Patterns::default().matches("small"));
        assert!(!Patterns::Listed(Vec::new()).matches("small"));
    }

    #[test]
    fn a_text_without_visible_characters_is_no_pattern() {
        for text in ["", "a\nb", &"x".repeat(LONGEST + 1)] {
            assert_eq!(Pattern::parse(text), Err(InvalidPattern), "{text:?}");
        }
    }

    /// The definition, by recursion.
    fn defined(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some(b'*'), _) if defined(&pattern[1..], name) => true,
            (Some(b'*'), Some(byte)) => *byte != b'/' && defined(pattern, &name[1..]),
            (Some(a), Some(b)) => a == b && defined(&pattern[1..], &name[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_equals_its_definition(pattern in "[ab*/]{1,8}", name in "[ab/]{0,10}") {
            prop_assert_eq!(matches(&pattern, &name), defined(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
