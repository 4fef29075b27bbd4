//! Kubernetes' quantities, and sums of them.

use serde_json::Value;

const NANO: i128 = 1_000_000_000;
const KIB: i128 = 1024;
const MIB: i128 = KIB * KIB;
const GIB: i128 = MIB * KIB;
/// More digits than any sensible quantity has; Kubernetes stores 64 bits.
const MAX_DIGITS: usize = 30;

/// An amount in billionths, the finest unit of Kubernetes. Sums that don't fit saturate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Quantity(i128);

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// More than any other quantity.
    pub const MAX: Self = Self(i128::MAX);

    /// Parses a quantity
    /// (<https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>). `None` for what isn't one, and for
    /// one that is beyond all clusters.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if !(1..=MAX_DIGITS).contains(&(whole.len() + fraction.len())) || fraction.contains('.') {
            return None;
        }
        // Without a text of both parts: the watch reads quantities of every pod.
        let digits = whole.bytes().chain(fraction.bytes()).fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        let (binary, exponent) = scale(suffix)?;
        let places = i32::try_from(fraction.len()).ok()?;
        let exponent = exponent + 9 - places;
        let scaled = digits.checked_mul(binary)?;
        let amount = match u32::try_from(exponent) {
            Ok(exponent) => scaled.checked_mul(10_i128.checked_pow(exponent)?)?,
            // Rounded up, as Kubernetes does.
            Err(_) => match 10_i128.checked_pow(exponent.unsigned_abs()) {
                Some(divisor) => scaled.checked_add(divisor - 1)? / divisor,
                None => i128::from(scaled > 0),
            },
        };
        Some(Self(if negative { -amount } else { amount }))
    }

    /// Reads a quantity of an object: a string or a number.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// Returns the sum.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the product.
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(i128::from(count)))
    }

    /// Returns the amount in thousandths, rounded up: millicores of a CPU. An amount that doesn't fit saturates.
    pub fn millis(self) -> i64 {
        i64::try_from(rounded_up(self.0, NANO / 1000)).unwrap_or(i64::MAX)
    }

    /// Returns the amount as a whole number, rounded up: bytes of a memory. An amount that doesn't fit saturates.
    pub fn units(self) -> i64 {
        i64::try_from(rounded_up(self.0, NANO)).unwrap_or(i64::MAX)
    }

    /// Returns the amount with a unit of memory.
    pub fn as_memory(self) -> String {
        match rounded_up(self.0, NANO) {
            bytes if bytes != 0 && bytes % GIB == 0 => format!("{}Gi", bytes / GIB),
            bytes if bytes >= 10 * MIB => format!("{}Mi", bytes / MIB + i128::from(bytes % MIB > 0)),
            bytes => bytes.to_string(),
        }
    }

    /// Returns the amount as a decimal number.
    pub fn as_number(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let amount = self.0.unsigned_abs();
        let (whole, rest) = (amount / NANO.unsigned_abs(), amount % NANO.unsigned_abs());
        match rest {
            0 => format!("{sign}{whole}"),
            rest => format!("{sign}{whole}.{}", format!("{rest:09}").trim_end_matches('0')),
        }
    }
}

fn rounded_up(amount: i128, unit: i128) -> i128 {
    (amount / unit).saturating_add(i128::from(amount % unit > 0))
}

/// Returns the scale of a suffix: a binary factor and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| KIB.checked_pow(power).map(|factor| (factor, 0));
    match suffix {
        "" => Some((1, 0)),
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (-40..=40).contains(&exponent).then_some((1, exponent))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        let same = |a: &str, b: &str| assert_eq!(Quantity::parse(a).unwrap(), Quantity::parse(b).unwrap(), "{a} {b}");
        same("1000m", "1");
        same("1.5Gi", "1536Mi");
        same("1e3", "1k");
        same("1E3", "1k");
        same("1E", "1000P");
        same("+.5", "500m");
        same("2.", "2");
        same("0.1n", "1n");
        assert!(Quantity::parse("1Gi") > Quantity::parse("1G"));
        for wrong in ["", "-", ".", "1.2.3", "1 Gi", "Gi", "1gi", "1e", "1e99", "0x1", "NaN", "٣"] {
            assert_eq!(Quantity::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_sum_that_does_not_fit_saturates() {
        let most = Quantity::parse("999999999E").unwrap();
        assert!(most.times(u64::MAX).plus(most) >= most);
        assert_eq!(Quantity::MAX.times(3), Quantity::MAX);
    }

    #[test]
    fn amounts_are_written_with_a_unit() {
        assert_eq!(Quantity::parse("2048Mi").unwrap().as_memory(), "2Gi");
        assert_eq!(Quantity::parse("1441792Ki").unwrap().as_memory(), "1408Mi");
        assert_eq!(Quantity::parse("1500m").unwrap().as_number(), "1.5");
        assert_eq!(Quantity::parse("1.0001").unwrap().millis(), 1001);
        assert_eq!(Quantity::parse("1500m").unwrap().units(), 2);
        assert_eq!(Quantity::parse("999999999E").unwrap().units(), i64::MAX);
    }
}
