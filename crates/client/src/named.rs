//! How a command names a submission: by its id, by the beginning of its id, or as the newest one.

use std::{fmt, str::FromStr};

use serde::Deserialize;

use super::{
    api::{Api, Call},
    document::{self, Submission},
    error::Error,
};
use sparkgate_submission::{InvalidSubmissionId, SubmissionId};

/// The name of the newest submission.
const LATEST: &str = "@latest";
const PREFIX: &str = "driver-";
/// The digits of the time in an id, to the second.
const TIME: usize = 14;
/// The fewest characters of a beginning after `driver-`: the digits of a day.
const FEWEST: usize = 8;
/// The most submissions that an ambiguous beginning is explained with.
const CANDIDATES: usize = 5;

/// A submission on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Id(SubmissionId),
    /// The beginning of an id.
    Beginning(String),
    /// The newest one that the caller may see.
    Latest,
}

/// The text names no submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoName {
    #[error(
        "a submission is named by its id, such as driver-20260102030405-0001, or by the beginning of its id, with at least the date: \
         20260102"
    )]
    Malformed,
    #[error("@latest may be another submission by then: give its id")]
    Moving,
}

impl Named {
    /// Returns the id of the submission.
    ///
    /// # Errors
    /// Those of the call; there is no submission, or several have this beginning.
    pub(super) async fn resolved(&self, api: &Api) -> Result<SubmissionId, Error> {
        #[derive(Deserialize)]
        struct Page {
            items: Vec<Submission>,
        }
        let call = match self {
            Self::Id(id) => return Ok(id.clone()),
            Self::Latest => Call::get("looking for the newest submission", &["submissions"]).query("limit", 1),
            Self::Beginning(text) => Call::get(format!("looking for {text}"), &["submissions"])
                .query("id", text)
                .query("limit", CANDIDATES + 1),
        };
        let Page { items } = document::read(call.action(), &api.send(&call).await?.body)?;
        match (self, items.as_slice()) {
            (Self::Latest, []) => Err(Error::Here(format!("{LATEST}: there is no submission"))),
            (_, []) => Err(Error::Unknown(format!("there is no submission whose id begins with {self}"))),
            (_, [one]) => one.id.parse().map_err(|error: InvalidSubmissionId| Error::NotUnderstood {
                action: call.action().to_owned(),
                cause: error.to_string(),
            }),
            (_, several) => Err(Error::Here(ambiguous(&self.to_string(), several))),
        }
    }

    /// Returns the ids of several submissions.
    ///
    /// # Errors
    /// As [`Named::resolved`], of the first that can't be resolved.
    pub(super) async fn all_resolved(names: &[Self], api: &Api) -> Result<Vec<SubmissionId>, Error> {
        let mut ids = Vec::with_capacity(names.len());
        for name in names {
            ids.push(name.resolved(api).await?);
        }
        Ok(ids)
    }

    /// Parses the name of a submission for a command that changes it.
    ///
    /// # Errors
    /// [`NoName`], also for `@latest`.
    pub(super) fn fixed(text: &str) -> Result<Self, NoName> {
        if text == LATEST { Err(NoName::Moving) } else { text.parse() }
    }
}

/// Explains which submissions a beginning may stand for, and how much of an id is enough.
fn ambiguous(beginning: &str, found: &[Submission]) -> String {
    let shown = &found[..found.len().min(CANDIDATES)];
    let count = if found.len() > CANDIDATES { format!("more than {CANDIDATES}") } else { found.len().to_string() };
    let mut text = format!("{beginning} is the beginning of {count} ids, of which the newest are");
    for one in shown {
        text += &format!("\n  {}  {}  {}", one.id, one.state, one.name);
    }
    let enough = if beginning.len() < PREFIX.len() + TIME {
        "\n  an id begins with the time of its submission (UTC): give it to the second, 14 digits"
    } else {
        "\n  these are of the same second: give the number after it, too"
    };
    text + enough
}

impl FromStr for Named {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        if text == LATEST {
            return Ok(Self::Latest);
        }
        let rest = text.strip_prefix(PREFIX).unwrap_or(text);
        let id: SubmissionId = format!("{PREFIX}{rest}").parse().map_err(|_| NoName::Malformed)?;
        match rest.split_once('-') {
            Some((time, number)) if time.len() == TIME && number.len() >= 4 => Ok(Self::Id(id)),
            _ if rest.len() >= FEWEST => Ok(Self::Beginning(id.to_string())),
            _ => Err(NoName::Malformed),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Beginning(text) => f.write_str(text),
            Self::Latest => f.write_str(LATEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_is_named_by_its_id_or_the_beginning_of_it() {
        let id = || Named::Id("driver-20260102030405-0001".parse().unwrap());
        let beginning = |text: &str| Named::Beginning(text.to_owned());
        for (text, expected) in [
            ("driver-20260102030405-0001", Ok(id())),
            ("20260102030405-0001", Ok(id())),
            ("20260102", Ok(beginning("driver-20260102"))),
            ("driver-20260102030405", Ok(beginning("driver-20260102030405"))),
            ("20260102030405-00", Ok(beginning("driver-20260102030405-00"))),
            ("@latest", Ok(Named::Latest)),
            ("driver-2026010", Err(NoName::Malformed)),
            ("driver-", Err(NoName::Malformed)),
            ("pi-driver-20260102", Err(NoName::Malformed)),
            ("", Err(NoName::Malformed)),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        assert_eq!((Named::fixed("@latest"), Named::fixed("20260102030405-0001")), (Err(NoName::Moving), Ok(id())));
    }

    #[test]
    fn an_ambiguous_beginning_is_explained() {
        let found = |count: usize| vec![Submission { id: "driver-1".to_owned(), ..Submission::default() }; count];
        let text = ambiguous("driver-20260102", &found(6));
        assert!(text.contains("more than 5 ids") && text.contains("14 digits"), "{text}");
        assert_eq!(text.lines().count(), 7, "{text}");
        let text = ambiguous("driver-20260102030405-0", &found(2));
        assert!(text.contains("of 2 ids") && text.contains("the number"), "{text}");
    }
}
