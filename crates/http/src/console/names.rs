//! The names of principals for people.

use maud::{Markup, html};

use super::{layout::word, text::visible};
use sparkgate_service::KeyNames;

/// The names of API keys, which are known by an id.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(KeyNames);

impl From<KeyNames> for Names {
    fn from(names: KeyNames) -> Self {
        Self(names)
    }
}

impl Names {
    /// Returns the name of a principal: that of an API key, else the subject without its provider.
    pub(super) fn of<'a>(&'a self, subject: &'a str) -> &'a str {
        let name = || subject.split_once(':').map_or(subject, |(_, name)| name);
        self.0.of(subject).unwrap_or_else(name)
    }

    /// Shows the name of a principal, with its subject as title.
    pub(super) fn show(&self, subject: &str) -> Markup {
        html! { span title=(visible(subject)) { (word(self.of(subject))) } }
    }
}
