//! How a command names a submission: by its id, or as the newest one.

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

/// A submission on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Id(SubmissionId),
    /// The newest one that the caller may see.
    Latest,
}

impl Named {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Id(id) => id.as_str(),
            Self::Latest => LATEST,
        }
    }

    /// Returns the submission by its id.
    ///
    /// # Errors
    /// Those of the call; there is no submission.
    pub(super) async fn resolved(self, api: &Api) -> Result<Self, Error> {
        if self != Self::Latest {
            return Ok(self);
        }
        #[derive(Deserialize)]
        struct Page {
            items: Vec<Submission>,
        }
        let call = Call::get("looking for the newest submission", &["submissions"]).query("limit", 1);
        let page: Page = document::read(call.action(), &api.send(&call).await?.body)?;
        let newest = page.items.into_iter().next();
        let newest = newest.ok_or_else(|| Error::Here(format!("{LATEST}: there is no submission")))?;
        let id = newest.id.parse().map_err(|error: InvalidSubmissionId| Error::NotUnderstood {
            action: call.action().to_owned(),
            cause: error.to_string(),
        })?;
        Ok(Self::Id(id))
    }
}

impl FromStr for Named {
    type Err = InvalidSubmissionId;

    fn from_str(text: &str) -> Result<Self, InvalidSubmissionId> {
        if text == LATEST { Ok(Self::Latest) } else { text.parse().map(Self::Id) }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
