//! The operator's History Server.

use std::str::FromStr;

use http::{Uri, uri::Scheme};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use sparkgate_store::Submission;

/// What stands for the id of the application, and of the submission.
const APP: &str = "{appId}";
const ID: &str = "{id}";
/// All characters that are not unreserved (RFC 3986): no id leaves its place in the URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The URL of an application in the operator's History Server, with `{appId}` or `{id}` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryUrl(String);

/// A text is no URL of applications.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is not a URL of applications: write one such as https://history.example.org/history/{{appId}}/jobs/, with {{appId}} or \
     {{id}} after the host"
)]
pub struct HistoryUrlError(String);

impl HistoryUrl {
    /// Returns the URL of a submission's application.
    pub(super) fn of(&self, submission: &Submission) -> String {
        self.with(&submission.names.app_id, submission.id.as_str())
    }

    fn with(&self, app_id: &str, id: &str) -> String {
        let escaped = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        self.0.replace(ID, &escaped(id)).replace(APP, &escaped(app_id))
    }
}

impl FromStr for HistoryUrl {
    type Err = HistoryUrlError;

    fn from_str(text: &str) -> Result<Self, HistoryUrlError> {
        let error = || HistoryUrlError(text.to_owned());
        let example = Self(text.to_owned()).with("app", "id");
        let uri: Uri = example.parse().map_err(|_| error())?;
        let is_http = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme());
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        // An id in the place of the host would let a submission choose the site.
        let start = format!("{}://{authority}", uri.scheme_str().unwrap_or_default());
        let names_one = text.strip_prefix(&start).is_some_and(|path| path.contains(APP) || path.contains(ID));
        if is_http && names_one { Ok(Self(text.to_owned())) } else { Err(error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_in_its_place_of_the_url() {
        let url: HistoryUrl = "https://history.example.org:18480/history/{appId}/jobs/?of={id}".parse().unwrap();
        let start = "https://history.example.org:18480/history";
        assert_eq!(url.with("spark-1", "driver-1"), format!("{start}/spark-1/jobs/?of=driver-1"));
        let odd = url.with("../?x=1#{id}&\"<é", "driver-1");
        assert_eq!(odd, format!("{start}/..%2F%3Fx%3D1%23%7Bid%7D%26%22%3C%C3%A9/jobs/?of=driver-1"));
    }

    #[test]
    fn a_url_names_the_application_after_its_host() {
        for text in ["http://h/{id}", "https://h:1/x?app={appId}"] {
            assert!(text.parse::<HistoryUrl>().is_ok(), "{text}");
        }
        for text in [
            "",
            "/history/{appId}",
            "https://h/history",
            "https://{appId}.h/",
            "ftp://h/{id}",
            "javascript:{id}",
            "https://h/ {id}",
        ] {
            assert!(text.parse::<HistoryUrl>().unwrap_err().to_string().contains("{appId}"), "{text}");
        }
    }
}
