//! Quantities such as `500m`, `1Gi`, `1e3`.

/// Returns the quantity's value, or `None` if the text is not a quantity.
pub(super) fn parse(quantity: &str) -> Option<f64> {
    let end = quantity.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at(end);
    let number: f64 = number.parse().ok()?;
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        _ => 10f64.powi(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn quantities_are_parsed_with_their_units() {
        assert_eq!(parse("1"), Some(1.0));
        assert_eq!(parse("500m"), Some(0.5));
        assert_eq!(parse("1408Mi"), Some(1408.0 * 1024.0 * 1024.0));
        assert_eq!(parse("12e2"), Some(1200.0));
        assert_eq!(parse("1E"), Some(1e18));
        for wrong in ["", "zz", "1g", "1 Gi", "1.2.3", "--1", "1ee3"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
