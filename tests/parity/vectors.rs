//! Single rules of Spark and Java with the JVM's answers: what becomes of a text.

use std::collections::BTreeMap;

/// By rule: what becomes of each input, or nothing where it is refused.
pub(crate) type Vectors = BTreeMap<String, BTreeMap<String, Option<String>>>;

/// Each rule with inputs of its own, and with parts that more inputs are made of.
pub(crate) const RULES: &[(&str, &[&str], &[&str])] = &[
    ("escapeKey", TEXTS, TEXT_PARTS),
    ("escapeValue", TEXTS, TEXT_PARTS),
    ("prefix", NAMES, NAME_PARTS),
    ("label", NAMES, NAME_PARTS),
    ("mebibytes", SIZES, SIZE_PARTS),
    ("double", DOUBLES, DOUBLE_PARTS),
];

const TEXTS: &[&str] = &[
    "",
    " ",
    "  two",
    "a b",
    "=",
    ":",
    "#",
    "!",
    "\\",
    "\t\n\r\u{c}",
    "\u{b}\u{0}\u{7f}",
    "ünï",
    "日本",
    "😀",
    "\u{2028}",
];
const TEXT_PARTS: &[&str] =
    &[" ", "=", ":", "#", "!", "\\", "\t", "\n", "\r", "\u{c}", "a", "B", "9", "ü", "'", "\"", "\u{1}", "$"];
const NAMES: &[&str] =
    &["", " ", "-", "--", "9", "9-9", "A.B_C", "ÜBER", "日本", "İstanbul", "ſpark", "K", "a\tb", "x"];
const NAME_PARTS: &[&str] = &["a", "Z", "9", "-", "--", ".", "_", " ", "ü", "É", "0", "spark", "aaaaaaaaaaaaaaaa"];
const SIZES: &[&str] = &[
    "",
    " ",
    "1",
    " 1 ",
    "1m",
    "1M",
    "1mb",
    "1MiB",
    "1g",
    "1gb",
    "1t",
    "1p",
    "1pb",
    "1k",
    "1kb",
    "1b",
    "0",
    "-1",
    "-1k",
    "1.5g",
    "1e3",
    "+1",
    "1023b",
    "1024b",
    "9223372036854775807",
    "9223372036854775808",
    "9223372036854775807k",
    "8796093022207m",
    "8796093022208m",
    "8191p",
    "8192p",
    "1 g",
    "g",
    "１g",
    "0x10",
];
const SIZE_PARTS: &[&str] = &["0", "1", "7", "9", "512", "k", "m", "g", "t", "p", "b", "M", "G", ".", "-", " "];
const DOUBLES: &[&str] = &[
    "0.1",
    ".5",
    "5.",
    "1e3",
    "1E-5",
    "1e-3",
    "0.001",
    "0.0001",
    "1e7",
    "9999999",
    "12345678.9",
    "1e22",
    "2e-3",
    "4.9e-324",
    "1.7976931348623157e308",
    "1e400",
    "-0",
    "NaN",
    "Infinity",
    "-Infinity",
    "inf",
    "nan",
    "0x1p3",
    "0x1.8p1",
    "1d",
    "1f",
    "1D",
    " 1 ",
    "1_0",
    "",
    "+.1",
    "1e",
    "٣",
    "2.0E-3",
    "100",
    "1.0",
    "0.30000000000000004",
    "2.2250738585072014E-308",
    "9007199254740993",
];
const DOUBLE_PARTS: &[&str] = &["0", "1", "3", "9", "25", ".", "e", "E", "-", "+", "00", "f", "d"];
