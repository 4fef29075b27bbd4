//! Texts of the Common Expression Language (<https://cel.dev>).

/// Returns a text as a literal.
pub(crate) fn literal(text: &str) -> String {
    let mut literal = String::from("'");
    for c in text.chars() {
        match c {
            '\\' | '\'' => literal.extend(['\\', c]),
            c if c.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal.push('\'');
    literal
}

/// Returns texts as a literal list.
pub(crate) fn list<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let literals: Vec<String> = texts.into_iter().map(|text| literal(text.as_ref())).collect();
    format!("[{}]", literals.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_can_not_leave_its_literal() {
        assert_eq!(literal(r"a\.b"), r"'a\\.b'");
        assert_eq!(literal("' + x + '"), r"'\' + x + \''");
        assert_eq!(literal("a\nb"), r"'a\u000ab'");
        assert_eq!(list(["a", "b'"]), r"['a', 'b\'']");
        assert_eq!(list::<&str>([]), "[]");
    }
}
