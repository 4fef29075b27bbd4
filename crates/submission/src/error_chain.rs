//! An error as one line.

use std::error::Error;

/// Returns the error and its causes in one line, for logs and for messages to users.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        // Some libraries repeat their cause in their own text.
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}
