//! Checks whether a text is accepted by the parsers of the JVM or of Spark.

/// Returns whether Scala's `toBoolean` accepts a text.
pub(super) fn is_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

/// Returns whether `Double.parseDouble` accepts a text, except for its hexadecimal form, which is not used for cores.
pub(super) fn is_double(text: &str) -> bool {
    let text = text.trim_matches(|c| c <= ' ');
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(number, "NaN" | "Infinity") {
        return true;
    }
    let number = number.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(number);
    // Rust would also accept `inf` and the like, so the text must begin as a number.
    number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && number.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b))
        && number.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_as_the_jvm_reads_them() {
        for good in ["1", "1.5", " 1e1\n", ".5", "5.", "-2", "+3d", "1F", "NaN", "-Infinity"] {
            assert!(is_double(good), "{good}");
        }
        for bad in ["", " ", "nan", "inf", "infinity", "1_0", "two", ".", "e1", "--1", "d", "1 2"] {
            assert!(!is_double(bad), "{bad}");
        }
    }
}
