//! Patterns for names, images and addresses: `*` matches within a segment, `**` across segments.

use regex::{Regex, RegexBuilder};

use crate::violation::Fault;

/// Maximum length of one pattern.
const MAX_LENGTH: usize = 512;
/// Maximum number of patterns of one list.
const MAX_COUNT: usize = 500;
/// Maximum size of a compiled list, in bytes.
const MAX_COMPILED: usize = 4 << 20;
/// A regular expression that matches no text.
const NOTHING: &str = r"\z.";

/// A compiled list of patterns.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    /// `None` for an empty list, which matches nothing.
    regex: Option<Regex>,
    patterns: Vec<String>,
}

impl Patterns {
    /// Compiles a list. `at` is its place in the document.
    pub(crate) fn compile(patterns: &[String], at: &str, faults: &mut Vec<Fault>) -> Self {
        Self::compile_with(patterns, at, faults, |pattern| Ok(expression(pattern)))
    }

    /// Compiles a list, each pattern to a regular expression.
    pub(crate) fn compile_with(
        patterns: &[String],
        at: &str,
        faults: &mut Vec<Fault>,
        translate: impl Fn(&str) -> Result<String, String>,
    ) -> Self {
        let none = Self { regex: None, patterns: patterns.to_vec() };
        if patterns.len() > MAX_COUNT {
            faults
                .push(Fault::new(at, format!("{} patterns are too many: the maximum is {MAX_COUNT}", patterns.len())));
            return none;
        }
        let mut alternatives = Vec::new();
        for (index, pattern) in patterns.iter().enumerate() {
            match check(pattern).and_then(|()| translate(pattern)) {
                Ok(expression) => alternatives.push(expression),
                Err(reason) => faults.push(Fault::new(&format!("{at}[{index}]"), reason)),
            }
        }
        if alternatives.is_empty() {
            return none;
        }
        let whole = format!(r"(?s)\A(?:{})\z", alternatives.join("|"));
        match RegexBuilder::new(&whole).size_limit(MAX_COMPILED).build() {
            Ok(regex) => Self { regex: Some(regex), patterns: patterns.to_vec() },
            Err(error) => {
                faults.push(Fault::new(at, format!("the patterns can't be compiled: {error}")));
                none
            }
        }
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// Returns the list as one regular expression.
    pub(crate) fn expression(&self) -> &str {
        self.regex.as_ref().map_or(NOTHING, Regex::as_str)
    }

    /// Returns whether the list has this pattern literally.
    pub(crate) fn contains(&self, pattern: &str) -> bool {
        self.patterns.iter().any(|own| own == pattern)
    }

    /// Returns the patterns for a message.
    pub(crate) fn describe(&self) -> String {
        const SHOWN: usize = 5;
        let mut text = self.patterns.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.patterns.len() {
            0 => "none".clone_into(&mut text),
            count if count > SHOWN => text.push_str(", …"),
            _ => {}
        }
        text
    }
}

fn check(pattern: &str) -> Result<(), String> {
    if pattern.is_empty() {
        return Err("a pattern must not be empty: use * for any name".to_owned());
    }
    if pattern.len() > MAX_LENGTH {
        return Err(format!("a pattern has at most {MAX_LENGTH} characters"));
    }
    if pattern.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("a pattern must not contain white space".to_owned());
    }
    Ok(())
}

/// Returns a pattern as a regular expression.
pub(crate) fn expression(pattern: &str) -> String {
    expression_of(pattern, "[^/]*")
}

/// Returns a pattern as a regular expression, with the expression that `*` stands for.
pub(crate) fn expression_of(pattern: &str, within_segment: &str) -> String {
    let mut expression = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('*') {
        expression.push_str(&regex::escape(&rest[..at]));
        let stars = rest[at..].len() - rest[at..].trim_start_matches('*').len();
        expression.push_str(if stars > 1 { ".*" } else { within_segment });
        rest = &rest[at + stars..];
    }
    expression.push_str(&regex::escape(rest));
    expression
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        let mut faults = Vec::new();
        let patterns = Patterns::compile(&[pattern.to_owned()], "at", &mut faults);
        assert!(faults.is_empty());
        patterns.matches(text)
    }

    #[test]
    fn one_star_stays_within_a_segment() {
        assert!(matches("team-*", "team-a") && matches("*", "a.b") && matches("a/*/c", "a/b/c"));
        assert!(!matches("*", "a/b") && !matches("team-*", "a-team-b") && !matches("a.c", "abc"));
        assert!(
            matches("**", "a/b") && matches("a/**", "a/b/c") && matches("**/c", "a/b/c") && !matches("a/**", "ab/c")
        );
        assert!(!matches("a", "a\n") && !matches("a", "b\na"));
    }

    #[test]
    fn an_empty_list_matches_nothing() {
        let mut faults = Vec::new();
        let none = Patterns::compile(&[], "at", &mut faults);
        let expression = Regex::new(none.expression()).unwrap();
        assert!(["", "a", "\n", "a\n"].iter().all(|text| !none.matches(text) && !expression.is_match(text)));
        assert!(faults.is_empty());
    }

    #[test]
    fn a_wrong_pattern_is_a_fault_with_its_place() {
        let mut faults = Vec::new();
        Patterns::compile(&["a".to_owned(), String::new(), "b c".to_owned()], "claims", &mut faults);
        let places: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(places, ["claims[1]", "claims[2]"]);
    }
}
