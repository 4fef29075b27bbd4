//! The origin of Spark UIs, if an operator gives them one.

use std::str::FromStr;

use http::{Uri, uri::Scheme};

use sparkgate_submission::SubmissionId;

/// What stands for the id of a submission.
const ID: &str = "{id}";
/// An id in its place.
const EXAMPLE: &str = "driver-1";

/// The URL of an origin that serves nothing but Spark UIs. With `{id}` at the beginning of its host, each submission has an origin of
/// its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiOrigin {
    /// Without a slash at its end.
    url: String,
    /// The name in `Host`, without a port, and in lower case.
    host: String,
}

/// A text is no origin of Spark UIs.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is not an origin for Spark UIs: write https://ui.example.org, or https://{{id}}.ui.example.org for one for each submission, \
     without a path"
)]
pub struct UiOriginError(String);

/// Whose UIs a host serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UiHost {
    All,
    Of(SubmissionId),
}

impl UiOrigin {
    /// Returns whether each submission has an origin of its own.
    pub fn is_of_one(&self) -> bool {
        self.host.starts_with(ID)
    }

    /// Returns the origin of a submission's UI.
    pub fn of(&self, id: &SubmissionId) -> String {
        self.url.replacen(ID, id.as_str(), 1)
    }

    /// Returns whose UIs a host serves, which is in lower case and without a port; `None` for one that serves none.
    pub fn at(&self, host: &str) -> Option<UiHost> {
        match self.host.strip_prefix(ID) {
            Some(rest) => Some(UiHost::Of(host.strip_suffix(rest)?.parse().ok()?)),
            None => (host == self.host).then_some(UiHost::All),
        }
    }
}

impl UiHost {
    /// Returns whether the host serves the UI of a submission.
    pub fn serves(&self, id: &SubmissionId) -> bool {
        match self {
            Self::All => true,
            Self::Of(own) => own == id,
        }
    }
}

impl FromStr for UiOrigin {
    type Err = UiOriginError;

    fn from_str(text: &str) -> Result<Self, UiOriginError> {
        let error = || UiOriginError(text.to_owned());
        let url = text.trim_end_matches('/').to_owned();
        let uri: Uri = url.replacen(ID, EXAMPLE, 1).parse().map_err(|_| error())?;
        let is_http = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme());
        let is_origin = uri.path_and_query().is_none_or(|whole| whole.as_str() == "/");
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(error)?;
        let host = authority.host().to_ascii_lowercase();
        let host = match url.contains(ID) {
            // Only a whole name is one that the browser takes for another origin, and the certificate's wildcard stands for.
            true => {
                format!("{ID}{}", host.strip_prefix(EXAMPLE).filter(|rest| rest.starts_with('.')).ok_or_else(error)?)
            }
            false => host,
        };
        if is_http && is_origin { Ok(Self { url, host }) } else { Err(error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SubmissionId {
        text.parse().unwrap()
    }

    #[test]
    fn one_origin_serves_all_uis() {
        let origin: UiOrigin = "https://UI.example.org:8443/".parse().unwrap();
        assert!(!origin.is_of_one());
        assert_eq!(origin.of(&id("driver-7")), "https://UI.example.org:8443");
        assert!(origin.at("ui.example.org").unwrap().serves(&id("driver-7")));
        for host in ["example.org", "x.ui.example.org", "driver-7.ui.example.org", ""] {
            assert_eq!(origin.at(host), None, "{host}");
        }
    }

    #[test]
    fn an_origin_of_one_submission_serves_that_one() {
        let origin: UiOrigin = "https://{id}.ui.example.org".parse().unwrap();
        assert!(origin.is_of_one());
        assert_eq!(origin.of(&id("driver-7")), "https://driver-7.ui.example.org");
        let host = origin.at("driver-7.ui.example.org").unwrap();
        assert!(host.serves(&id("driver-7")) && !host.serves(&id("driver-70")));
        for host in
            ["ui.example.org", "driver-7.x.ui.example.org", "driver-x.ui.example.org", "driver-7", ".ui.example.org"]
        {
            assert_eq!(origin.at(host), None, "{host}");
        }
    }

    #[test]
    fn only_origins_are_taken() {
        for text in [
            "",
            "ui.example.org",
            "https://",
            "ftp://ui.example.org",
            "https://ui.example.org/spark",
            "https://ui.example.org?x",
            "https://user@ui.example.org",
            "https://x{id}.ui.example.org",
            "https://{id}",
            "https://{id}-ui.example.org",
            "https://ui.example.org/{id}",
            "https://{id}.{id}.example.org",
            "https://ui. example.org",
        ] {
            assert!(text.parse::<UiOrigin>().unwrap_err().to_string().contains("{id}"), "{text}");
        }
    }
}
