//! Label selectors: `a=b, c!=d, e in (f,g), h notin (i), j, !k, l>1`.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Value};

#[derive(Debug)]
pub(in super::super) struct LabelSelector(Vec<Requirement>);

#[derive(Debug)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Exists,
    Absent,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Parses a selector.
    ///
    /// # Errors
    /// The text is not a selector; the message says where parsing failed.
    pub(in super::super) fn parse(selector: &str) -> Result<Self, String> {
        let mut tokens = Tokens(selector.chars().peekable());
        let mut requirements = Vec::new();
        let mut token = tokens.next();
        while let Some(first) = token {
            requirements.push(requirement(first, &mut tokens)?);
            token = match tokens.next() {
                None => None,
                Some(comma) if comma == "," => match tokens.next() {
                    None => return Err("unable to parse requirement: found '', expected: identifier after ','".into()),
                    next => next,
                },
                Some(other) => {
                    return Err(format!(
                        "unable to parse requirement: found '{other}', expected: in, notin, =, ==, !=, gt, lt"
                    ));
                }
            };
        }
        Ok(Self(requirements))
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in super::super) fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        self.0.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        let value = labels.and_then(|labels| labels.get(&self.key)).and_then(Value::as_str);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            // As in Kubernetes, an object without the label matches.
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Above(limit) => number().is_some_and(|number| number > *limit),
            Test::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

fn requirement(first: String, tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    if first == "!" {
        return Ok(Requirement { key: word(tokens.next())?, test: Test::Absent });
    }
    let key = word(Some(first))?;
    let test = match tokens.peek_operator().as_deref() {
        None => Test::Exists,
        Some("=" | "==") => Test::In(BTreeSet::from([tokens.value()])),
        Some("!=") => Test::NotIn(BTreeSet::from([tokens.value()])),
        Some("in") => Test::In(tokens.values()?),
        Some("notin") => Test::NotIn(tokens.values()?),
        Some(">") => Test::Above(integer(&tokens.value())?),
        Some("<") => Test::Below(integer(&tokens.value())?),
        Some(other) => {
            return Err(format!(
                "unable to parse requirement: found '{other}', expected: in, notin, =, ==, !=, gt, lt"
            ));
        }
    };
    Ok(Requirement { key, test })
}

fn integer(value: &str) -> Result<i64, String> {
    value.parse().map_err(|_| format!("for 'Gt', 'Lt' operators, the value must be an integer: {value}"))
}

fn word(token: Option<String>) -> Result<String, String> {
    match token {
        Some(word) if word.starts_with(is_word) => Ok(word),
        other => Err(format!(
            "unable to parse requirement: found '{}', expected: !, identifier, or ','",
            other.unwrap_or_default()
        )),
    }
}

fn is_word(character: char) -> bool {
    !character.is_whitespace() && !"=!(),<>".contains(character)
}

/// The tokens of a selector: words, and the signs between them.
struct Tokens<'a>(Peekable<Chars<'a>>);

impl Tokens<'_> {
    fn next(&mut self) -> Option<String> {
        while self.0.next_if(|next| next.is_whitespace()).is_some() {}
        let first = self.0.next()?;
        let mut token = String::from(first);
        if is_word(first) {
            while let Some(next) = self.0.next_if(|next| is_word(*next)) {
                token.push(next);
            }
        } else if "=!".contains(first) && self.0.next_if_eq(&'=').is_some() {
            token.push('=');
        }
        Some(token)
    }

    /// Reads the operator after a key; `None` if the requirement ends there.
    fn peek_operator(&mut self) -> Option<String> {
        while self.0.next_if(|next| next.is_whitespace()).is_some() {}
        if self.0.peek().is_none_or(|next| *next == ',') {
            return None;
        }
        self.next()
    }

    /// Reads a value, which may be empty.
    fn value(&mut self) -> String {
        while self.0.next_if(|next| next.is_whitespace()).is_some() {}
        if self.0.peek().is_none_or(|next| !is_word(*next)) {
            return String::new();
        }
        self.next().unwrap_or_default()
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let found = |token: Option<String>| format!("found '{}', expected: ',' or ')'", token.unwrap_or_default());
        match self.next() {
            Some(open) if open == "(" => {}
            other => return Err(format!("found '{}' expected: '('", other.unwrap_or_default())),
        }
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.value());
            match self.next() {
                Some(sign) if sign == "," => {}
                Some(sign) if sign == ")" => return Ok(values),
                other => return Err(found(other)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_form_of_selector_matches_as_in_kubernetes() {
        let pod = json!({ "metadata": { "labels": { "role": "driver", "n": "3", "a.b/c": "" } } });
        for (selector, expected) in [
            ("", true),
            ("role=driver", true),
            ("role==executor", false),
            ("role!=executor,n", true),
            ("absent!=x", true),
            ("absent notin (x)", true),
            ("!role", false),
            ("! absent", true),
            ("role in (executor, driver)", true),
            ("role notin (executor,driver)", false),
            ("a.b/c=", true),
            ("a.b/c in ()", true),
            ("n>2, n<4", true),
            ("n>3", false),
        ] {
            let parsed = LabelSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(&pod), expected, "{selector}");
        }
    }

    #[test]
    fn malformed_selectors_are_refused() {
        for selector in ["a b", "=", "a in", "a in (b", "a in b", "n>x", "a,", ",a", "!", "a=b c=d", "(a)"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
