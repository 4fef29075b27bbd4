//! Field selectors: `metadata.name=a,status.phase!=Running`, over the few fields that each resource supports.

use serde_json::Value;

use super::super::resource::Resource;

#[derive(Debug)]
pub(in super::super) struct FieldSelector(Vec<Term>);

#[derive(Debug)]
struct Term {
    pointer: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses a selector.
    ///
    /// # Errors
    /// The text is not a selector, or the resource cannot be selected by that field.
    pub(in super::super) fn parse(selector: &str, resource: &Resource) -> Result<Self, String> {
        let mut terms = Vec::new();
        for term in split_terms(selector) {
            let (field, sign, value) = split_term(&term)
                .ok_or_else(|| format!("invalid field selector: '{selector}'; can't understand '{term}'"))?;
            check(field, resource)?;
            terms.push(Term { pointer: pointer(field), value: unescape(value), equal: sign });
        }
        Ok(Self(terms))
    }

    /// Adds `metadata.name=name`, for a watch of a single object, whose name is in the path.
    pub(in super::super) fn require_name(&mut self, name: &str) {
        self.0.push(Term { pointer: "/metadata/name".into(), value: name.into(), equal: true });
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in super::super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| (as_text(object.pointer(&term.pointer)) == term.value) == term.equal)
    }
}

fn check(field: &str, resource: &Resource) -> Result<(), String> {
    let mut known = vec!["metadata.name"];
    if resource.namespaced {
        known.push("metadata.namespace");
    }
    known.extend(resource.fields);
    if known.contains(&field) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(|field| format!("\"{field}\"")).collect();
    Err(format!("\"{field}\" is not a known field selector: only {}", known.join(", ")))
}

fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

fn as_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Splits at commas that are not escaped by a backslash.
fn split_terms(selector: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for character in selector.chars() {
        if character == ',' && !escaped {
            terms.push(String::new());
        } else if let Some(last) = terms.last_mut() {
            last.push(character);
        }
        escaped = character == '\\' && !escaped;
    }
    terms.retain(|term| !term.is_empty());
    terms
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find(['=', '!'])?;
    let (field, rest) = term.split_at(at);
    let (sign, value) = if let Some(value) = rest.strip_prefix("!=") {
        (false, value)
    } else {
        (true, rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?)
    };
    (!field.is_empty()).then_some((field.trim(), sign, value))
}

fn unescape(value: &str) -> String {
    let mut plain = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::resource::PODS;
    use super::*;

    #[test]
    fn terms_are_joined_and_absent_fields_are_empty() {
        let pod = json!({ "metadata": { "name": "a,b" }, "status": { "phase": "Running" } });
        for (selector, expected) in [
            ("", true),
            ("status.phase=Running", true),
            ("status.phase==Running,metadata.name=a\\,b", true),
            ("status.phase!=Running", false),
            ("spec.nodeName=", true),
            ("spec.nodeName!=", false),
        ] {
            assert_eq!(FieldSelector::parse(selector, &PODS).unwrap().matches(&pod), expected, "{selector}");
        }
    }

    #[test]
    fn unknown_fields_and_malformed_selectors_are_refused() {
        for selector in ["data.x=b", "metadata.name", "=a", "metadata.name!a"] {
            assert!(FieldSelector::parse(selector, &PODS).is_err(), "{selector}");
        }
    }
}
