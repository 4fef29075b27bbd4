//! What an operator says of a queue: the word of a state, and why.

use sparkgate_service::QueueState;

/// The longest reason, in bytes.
pub(crate) const REASON: usize = 256;

/// Parses a state; `None` is the normal one.
///
/// # Errors
/// The words that there are.
pub(crate) fn state_of(word: &str) -> Result<Option<QueueState>, String> {
    match word {
        "open" => Ok(None),
        "paused" => Ok(Some(QueueState::Paused)),
        "draining" => Ok(Some(QueueState::Draining)),
        other => Err(format!("{other:?} is none of open, paused, draining")),
    }
}

/// Returns a reason for people, if there is one.
///
/// # Errors
/// What a reason has to be.
pub(crate) fn reason(text: Option<&str>) -> Result<Option<&str>, String> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    if text.is_some_and(|text| text.len() > REASON || text.chars().any(char::is_control)) {
        return Err(format!("has at most {REASON} bytes, on one line"));
    }
    Ok(text)
}
