//! The parameters of a query. An unknown parameter is an error: a request with a misspelt filter must not return
//! everything.

use std::{borrow::Cow, str::FromStr};

use axum::{extract::FromRequestParts, http::request::Parts};
use chrono::{DateTime, Datelike, Utc};

use super::Problem;

/// The parameters that haven't been taken yet.
pub(in crate::api) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(form_urlencoded::parse(query.as_bytes()).map(|(key, value)| (own(key), own(value))).collect()))
    }
}

fn own(text: Cow<'_, str>) -> String {
    text.into_owned()
}

impl Params {
    /// Takes the only value of a parameter.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let mut values = self.take_all(name)?;
        match values.len() {
            0 | 1 => Ok(values.pop()),
            n => Err(Problem::parameter(name, format!("given {n} times; only one value is allowed"))),
        }
    }

    /// Takes all values of a parameter that may be repeated.
    pub(super) fn take_all(&mut self, name: &str) -> Result<Vec<String>, Problem> {
        let (taken, rest) = std::mem::take(&mut self.0).into_iter().partition(|(key, _)| key == name);
        self.0 = rest;
        let taken: Vec<(String, String)> = taken;
        if taken.iter().any(|(_, value)| value.contains('\0')) {
            return Err(Problem::parameter(name, "a NUL character is not allowed"));
        }
        Ok(taken.into_iter().map(|(_, value)| value).collect())
    }

    pub(super) fn parse<T: FromStr>(&mut self, name: &str, expected: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.take(name)? else { return Ok(None) };
        let wrong = |_| Problem::parameter(name, format!("{text:?} is not {expected}"));
        text.parse().map(Some).map_err(wrong)
    }

    /// Takes a time in the format of RFC 3339.
    pub(super) fn time(&mut self, name: &str) -> Result<Option<DateTime<Utc>>, Problem> {
        let time: Option<DateTime<Utc>> = self.parse(name, "a time such as 2026-01-02T03:04:05Z")?;
        match time {
            Some(time) if !(1970..10_000).contains(&time.year()) => {
                Err(Problem::parameter(name, "the year must be between 1970 and 9999"))
            }
            time => Ok(time),
        }
    }

    /// Takes the page size.
    pub(super) fn limit(&mut self, default: u32, most: u32) -> Result<u32, Problem> {
        let limit = self.parse("limit", "a whole number")?.unwrap_or(default);
        if (1..=most).contains(&limit) {
            return Ok(limit);
        }
        Err(Problem::parameter("limit", format!("{limit} is not between 1 and {most}")))
    }

    /// Checks that all parameters have been taken.
    pub(super) fn finish(self) -> Result<(), Problem> {
        match self.0.first() {
            Some((name, _)) => Err(Problem::parameter(name, "unknown parameter")),
            None => Ok(()),
        }
    }
}
