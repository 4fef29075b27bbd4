//! Sizes and numbers as text, as Java reads and writes them.

use crate::version::SparkVersion;

const KIB: i64 = 1024;
const MIB: i64 = KIB * KIB;

/// Parses a size such as `512m` in bytes (`JavaUtils.byteStringAsBytes`): whole numbers only; a missing unit means bytes.
pub fn bytes(text: &str, version: SparkVersion) -> Option<i64> {
    scaled(text, 1, version)
}

/// Parses a size such as `2g` in MiB, rounded down; a missing unit means MiB. As in Spark's entries, it may begin with a minus
/// sign.
pub fn mib(text: &str, version: SparkVersion) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(size) => Some(-scaled(size, MIB, version)?),
        None => scaled(text, MIB, version),
    }
}

/// Parses a size in the wanted unit, which is also that of a number without one (`ByteUnit.convertTo`). `None` for a fraction,
/// an unknown unit, and a number that `Long` can't hold.
fn scaled(text: &str, wanted: i64, version: SparkVersion) -> Option<i64> {
    let lower = text.to_lowercase();
    let lower = lower.trim_matches(|c| c <= ' ');
    let split = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (digits, suffix) = lower.split_at(split);
    let unit = match suffix {
        "" => wanted,
        "b" => 1,
        "k" | "kb" => KIB,
        "m" | "mb" => MIB,
        "g" | "gb" => MIB * KIB,
        "t" | "tb" => MIB * MIB,
        "p" | "pb" => MIB * MIB * KIB,
        _ if version < SparkVersion::V4_2 => return None,
        "ki" | "kib" => KIB,
        "mi" | "mib" => MIB,
        "gi" | "gib" => MIB * KIB,
        "ti" | "tib" => MIB * MIB,
        "pi" | "pib" => MIB * MIB * KIB,
        _ => return None,
    };
    let number: i64 = digits.parse().ok()?;
    if unit > wanted { number.checked_mul(unit / wanted) } else { Some(number / (wanted / unit)) }
}

/// Parses a number as `Double.parseDouble` does: a type suffix (`0.5f`) and hexadecimal (`0x1.8p3`) are accepted; of words,
/// only `NaN` and `Infinity` are.
pub fn double(text: &str) -> Option<f64> {
    let number = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        "NaN" | "Infinity" => text.parse().ok(),
        _ if unsigned.starts_with("0x") || unsigned.starts_with("0X") => {
            let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
            Some(sign * hexadecimal(&number.strip_prefix(['+', '-']).unwrap_or(number)[2..])?)
        }
        _ if number.ends_with(|c: char| c.is_ascii_digit() || c == '.') => number.parse().ok(),
        _ => None,
    }
}

/// Parses `<digits>[.<digits>]p<exponent of two>` with up to 16 digits, more than a double can distinguish.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mantissa = u64::from_str_radix(&digits, 16).ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    Some(mantissa as f64 * f64::from(exponent.saturating_sub(4 * places)).exp2())
}

/// Returns a double in the format of `Double.toString`: `0.1`, `2.0`, `1.0E-4`.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_infinite() {
        return if value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    if value == 0.0 || value.is_nan() || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => {
            // Java writes two digits, and of all pairs of digits that stand for the same double the nearest.
            let nearest = format!("{value:.1E}");
            if nearest.parse() == Ok(value) { nearest } else { format!("{mantissa}.0E{exponent}") }
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_with_javas_units() {
        let mib = |text| mib(text, SparkVersion::V4_1);
        assert_eq!(mib("1g"), Some(1024));
        assert_eq!(mib("1000"), Some(1000));
        assert_eq!(mib("1048577k"), Some(1024));
        assert_eq!(mib("-5"), Some(-5));
        assert_eq!(mib(" 2GB "), Some(2048));
        assert_eq!(bytes("1000", SparkVersion::V4_1), Some(1000));
        assert_eq!(bytes("9223372036854775807", SparkVersion::V4_1), Some(i64::MAX));
        for wrong in ["1.5g", "", "g", "1x", "one", "9999999999999p", "1gib", "1 g"] {
            assert_eq!(mib(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn binary_units_have_a_second_spelling_since_4_2() {
        let mib = |text| mib(text, SparkVersion::V4_2);
        assert_eq!(["2gib", "2Gi", "2048mi", "2g"].map(mib), [Some(2048); 4]);
        assert_eq!(["1ib", "1i", "1bi", "1bib", "1gbi", "1gii"].map(mib), [None; 6]);
    }

    #[test]
    fn doubles_are_read_as_java_reads_them() {
        assert_eq!(["0.5f", "1e-1", "2d", ".5", "+3."].map(double), [0.5, 0.1, 2.0, 0.5, 3.0].map(Some));
        assert_eq!(["0x1p3", "-0X1.8p1", "0x.8p0d"].map(double), [8.0, -3.0, 0.5].map(Some));
        assert_eq!(["0x1", "0xp1", "0x1p", "0x+1p1"].map(double), [None; 4]);
        assert_eq!(["inf", "nan", "f", "", "0.5fd", "1_0"].map(double), [None; 6]);
    }

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        let written = [0.1, 0.25, 2.0, 0.0, 0.0001, 0.001, 12345678.0, 1e7].map(double_text);
        assert_eq!(written, ["0.1", "0.25", "2.0", "0.0", "1.0E-4", "0.001", "1.2345678E7", "1.0E7"]);
        let odd = [f64::INFINITY, 4.9e-324, 2e-323].map(double_text);
        assert_eq!(odd, ["Infinity", "4.9E-324", "2.0E-323"]);
    }
}
