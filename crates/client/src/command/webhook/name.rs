//! How a command names a webhook: by its id, or by the beginning of its id.

use std::{convert::Infallible, str::FromStr};

use serde::Deserialize;

use crate::{
    api::{Api, Call},
    document,
    error::Error,
};

const PREFIX: &str = "wh_";
/// The length of an id.
const LENGTH: usize = PREFIX.len() + 16;
/// The prefix of ids of webhooks that the request of a submission named. The lists that show them name the submission.
const OF_SUBMISSION: &str = "driver-";

/// A webhook on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WebhookName {
    Id(String),
    /// The beginning of an id.
    Beginning(String),
}

impl WebhookName {
    /// Returns the id of the webhook.
    ///
    /// # Errors
    /// Those of the call; there is no webhook, or several have this beginning.
    pub(super) async fn resolved(&self, api: &Api) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Webhook {
            id: String,
        }
        #[derive(Deserialize)]
        struct Webhooks {
            items: Vec<Webhook>,
        }
        let beginning = match self {
            Self::Id(id) => return Ok(id.clone()),
            Self::Beginning(beginning) => beginning,
        };
        let call = Call::get(format!("looking for {beginning}"), &["webhooks"]);
        let Webhooks { items } = document::read(call.action(), &api.send(&call).await?.body)?;
        let ids: Vec<String> = items.into_iter().map(|one| one.id).filter(|id| id.starts_with(beginning)).collect();
        match <[String; 1]>::try_from(ids) {
            Ok([id]) => Ok(id),
            Err(none) if none.is_empty() => {
                Err(Error::Unknown(format!("there is no webhook whose id begins with {beginning}")))
            }
            Err(several) => {
                let count = several.len();
                Err(Error::Here(format!("{beginning} is the beginning of {count} ids: {}", several.join(", "))))
            }
        }
    }

    /// Returns the ids of several webhooks.
    ///
    /// # Errors
    /// As [`WebhookName::resolved`], of the first that can't be resolved.
    pub(super) async fn all_resolved(names: &[Self], api: &Api) -> Result<Vec<String>, Error> {
        let mut ids = Vec::with_capacity(names.len());
        for name in names {
            ids.push(name.resolved(api).await?);
        }
        Ok(ids)
    }
}

impl FromStr for WebhookName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        if text.starts_with(OF_SUBMISSION) {
            return Ok(Self::Id(text.to_owned()));
        }
        let id = format!("{PREFIX}{}", text.strip_prefix(PREFIX).unwrap_or(text));
        Ok(if id.len() < LENGTH { Self::Beginning(id) } else { Self::Id(id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_named_by_its_id_or_the_beginning_of_it() {
        let id = |text: &str| WebhookName::Id(text.to_owned());
        let beginning = |text: &str| WebhookName::Beginning(text.to_owned());
        for (text, expected) in [
            ("wh_6f1c2a9b03d4e5f6", id("wh_6f1c2a9b03d4e5f6")),
            ("6f1c2a9b03d4e5f6", id("wh_6f1c2a9b03d4e5f6")),
            ("wh_6f", beginning("wh_6f")),
            ("6f", beginning("wh_6f")),
            ("driver-20260102030405-0001-0", id("driver-20260102030405-0001-0")),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }
}
