//! The query of a request: list, watch, delete and patch options.

use std::collections::HashMap;

use axum::extract::Query;
use axum::http::Uri;

use super::failure::{Answer, Failure};

#[derive(Debug, Default)]
pub(super) struct Options(HashMap<String, String>);

impl Options {
    /// # Errors
    /// The query is malformed, or asks for a dry run: the sandbox would store the object all the same.
    pub(super) fn parse(uri: &Uri) -> Answer<Self> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Failure::bad_request(format!("the query cannot be read: {error}")))?;
        let options = Self(pairs.into_iter().collect());
        if !options.text("dryRun").is_empty() {
            return Err(Failure::bad_request("the sandbox does not support dryRun"));
        }
        Ok(options)
    }

    /// The option's value, or the empty string.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Present without a value counts as true, as it does in Kubernetes.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !matches!(value.as_str(), "0" | "false" | "False" | "FALSE" | "f" | "F"))
    }

    /// # Errors
    /// The value is no integer.
    pub(super) fn integer(&self, name: &str) -> Answer<Option<i64>> {
        match self.text(name) {
            "" => Ok(None),
            value => value
                .parse()
                .map(Some)
                .map_err(|_| Failure::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax"))),
        }
    }

    /// The version asked for; `None` when there is none or it is empty.
    ///
    /// # Errors
    /// The value is no version.
    pub(super) fn version(&self) -> Answer<Option<u64>> {
        match self.text("resourceVersion") {
            "" => Ok(None),
            value => value.parse().map(Some).map_err(|_| {
                Failure::bad_request(format!(
                    "invalid resource version: resourceVersion: Invalid value: {value:?}: strconv.ParseUint: parsing {value:?}: invalid syntax"
                ))
            }),
        }
    }

    /// All options except those named.
    pub(super) fn without<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(name, _)| !names.contains(name))
    }
}
