//! Why an overlay can't be applied.

/// Why an overlay can't be applied to an attempt's objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayError {
    /// The objects have another value already. Trying again doesn't help.
    #[error("the {pod}'s {field} {key} is {present}, and would have to be {wanted}")]
    Conflict { pod: &'static str, field: &'static str, key: String, present: String, wanted: String },
    /// The objects aren't those of a driver.
    #[error("{0}")]
    Unreadable(String),
}

pub(super) fn conflict(pod: &'static str, field: &'static str, key: &str, present: &str, wanted: &str) -> OverlayError {
    let (key, present, wanted) = (key.to_owned(), present.to_owned(), wanted.to_owned());
    OverlayError::Conflict { pod, field, key, present, wanted }
}

pub(super) fn unreadable(why: impl Into<String>) -> OverlayError {
    OverlayError::Unreadable(why.into())
}
