//! Lines that consist of a title and a value.

use super::clean;

#[derive(Debug, Default)]
pub(super) struct Fields(String);

impl Fields {
    /// Adds a line, unless the value is empty.
    pub(super) fn add(&mut self, title: &str, value: impl Into<Option<String>>) {
        if let Some(value) = value.into().filter(|value| !value.is_empty()) {
            self.add_styled(title, &clean::line(&value));
        }
    }

    /// Adds a line with a value that is already clean and may contain colours.
    pub(super) fn add_styled(&mut self, title: &str, value: &str) {
        let title = format!("{title}:");
        self.0 += &format!("{title:<13}{value}\n");
    }

    /// Returns the lines.
    pub(super) fn finish(self) -> String {
        self.0
    }
}
