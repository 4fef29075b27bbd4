//! The query of a request: list, watch, delete and patch options.

use std::collections::HashMap;

use axum::extract::Query;
use axum::http::Uri;

use super::failure::{Answer, Failure};

#[derive(Debug, Default)]
pub(super) struct Options(HashMap<String, String>);

impl Options {
    /// Parses the query.
    ///
    /// # Errors
    /// The query is malformed, or requests a dry run, which the sandbox refuses because it would store the object nevertheless.
    pub(super) fn parse(uri: &Uri) -> Answer<Self> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Failure::bad_request(format!("the query cannot be read: {error}")))?;
        let options = Self(pairs.into_iter().collect());
        if !options.text("dryRun").is_empty() {
            return Err(Failure::bad_request("the sandbox does not support dryRun"));
        }
        Ok(options)
    }

    /// Returns the option's value, or the empty string.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Returns whether a flag is set. As in Kubernetes, a flag without a value counts as true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !matches!(value.as_str(), "0" | "false" | "False" | "FALSE" | "f" | "F"))
    }

    /// Parses an integer.
    ///
    /// # Errors
    /// The value is not an integer.
    pub(super) fn integer(&self, name: &str) -> Answer<Option<i64>> {
        match self.text(name) {
            "" => Ok(None),
            value => value
                .parse()
                .map(Some)
                .map_err(|_| Failure::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax"))),
        }
    }

    /// Returns the requested resource version; `None` if it is absent or empty.
    ///
    /// # Errors
    /// The value is not a version.
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

    /// Returns all options except those with the given names.
    pub(super) fn without<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(name, _)| !names.contains(name))
    }
}
