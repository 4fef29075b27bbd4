//! Parsers of option values other than times.

use sparkgate_submission::queues::PRIORITIES;

/// Maximum number of labels of one submission.
pub(super) const LABELS_MAX: usize = 32;
const KEY_MAX: usize = 255;
const RETRIES_MAX: u32 = 100;

/// Parses a key: any printable ASCII, so that it fits into a header. Surrounding quotes aren't part of it (RFC 8941 strings
/// have them).
pub(super) fn idempotency_key(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let fits = !bare.is_empty() && bare.len() <= KEY_MAX && bare.bytes().all(|b| (b' '..=b'~').contains(&b));
    if fits { Ok(bare.to_owned()) } else { Err(format!("a key has 1 to {KEY_MAX} printable ASCII characters")) }
}

/// Parses a client's id of a submission: text that fits into a line of a log and into an index.
pub(super) fn client_id(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.len() <= KEY_MAX && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(format!("an id has 1 to {KEY_MAX} bytes without control characters")) }
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    text.to_ascii_lowercase().parse().map_err(|_| format!("{text:?} is neither true nor false"))
}

pub(super) fn count(text: &str) -> Result<u32, String> {
    let count = text.parse().map_err(|_| format!("{text:?} is not a number of retries"))?;
    within(Some(count), None).map(|()| count)
}

pub(super) fn priority(text: &str) -> Result<i32, String> {
    let priority = text.parse().ok().filter(|priority| PRIORITIES.contains(priority));
    priority.ok_or_else(|| {
        format!("{text:?} is not a priority: a whole number from {} to {}", PRIORITIES.start(), PRIORITIES.end())
    })
}

pub(super) fn within(asked: Option<u32>, cap: Option<u32>) -> Result<(), String> {
    let most = cap.unwrap_or(RETRIES_MAX).min(RETRIES_MAX);
    match asked {
        Some(asked) if asked > most => Err(format!("{asked} retries: this gateway allows {most}")),
        _ => Ok(()),
    }
}

/// Checks Kubernetes' syntax: `[prefix/]name` of at most 253 and 63 characters, and a value of at most 63.
pub(super) fn label(key: &str, value: &str) -> Result<(), String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_fits = prefix.is_none_or(|prefix| {
        let part = |part: &str| is_word(part, false) && !part.bytes().any(|b| b.is_ascii_uppercase() || b == b'_');
        prefix.len() <= 253 && prefix.split('.').all(part)
    });
    if !prefix_fits || !is_word(name, true) {
        return Err(format!("{key:?} is not the key of a label: see Kubernetes' \"Labels and Selectors\""));
    }
    if value.is_empty() || is_word(value, true) {
        return Ok(());
    }
    Err(format!("{value:?} is not the value of a label: up to 63 letters, digits, and within them - _ ."))
}

fn is_word(text: &str, dots: bool) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || dots && b == b'.';
    let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= 63 && text.bytes().all(inner) && ends(text.bytes().next()) && ends(text.bytes().next_back())
}
