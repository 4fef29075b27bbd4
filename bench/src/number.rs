//! Numbers as tables and pages have them.

/// Formats the value with its significant digits, and commas between thousands.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        ..0.995 => format!("{value:.3}"),
        ..99.5 => format!("{value:.2}"),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no figure is as large, and its sign is written before"
        )]
        size => format!("{}{}", if value < 0.0 { "-" } else { "" }, count(size.round() as usize)),
    }
}

/// Returns the number with thousands separators.
pub(crate) fn count(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_significant_digits() {
        let written = [0.1234, 9.996, 99.6, 999.6, -4351.0, 1_234_567.0].map(number);
        assert_eq!(written, ["0.123", "10.00", "100", "1,000", "-4,351", "1,234,567"]);
    }

    #[test]
    fn numbers_have_thousands_separators() {
        assert_eq!([1_000_000, 12_345, 100].map(count), ["1,000,000", "12,345", "100"]);
    }
}
