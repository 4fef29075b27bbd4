//! Webhooks of a single submission, which its request names.

use super::{
    Webhooks,
    secrets::{Secrets, SigningSecret},
};
use crate::{
    service::{error::Error, options::webhook::SubmissionWebhook},
    spark::Refusal,
    store::{NewWebhook, WebhookFilter},
    submission::{State, SubmissionId},
};

/// The most webhooks of one submission.
const MOST: usize = 4;

impl Webhooks {
    /// Checks the webhooks of a request.
    ///
    /// # Errors
    /// A [`Refusal`] that names the field.
    pub(in crate::service) fn check(&self, webhooks: &[SubmissionWebhook]) -> Result<(), Refusal> {
        if webhooks.len() > MOST {
            return Err(Refusal::field("webhooks", format!("{} webhooks: there may be {MOST}", webhooks.len())));
        }
        for (at, webhook) in webhooks.iter().enumerate() {
            let checked = self.settings().check(&webhook.url);
            checked.map_err(|reason| Refusal::field(format!("webhooks[{at}].url"), reason))?;
            SigningSecret::parse(&webhook.secret, &format!("webhooks[{at}].secret"))?;
        }
        Ok(())
    }

    /// Stores the webhooks of a submission, before it is accepted.
    pub(in crate::service) async fn attach(
        &self,
        id: &SubmissionId,
        tenant: &str,
        principal: &str,
        webhooks: &[SubmissionWebhook],
    ) -> Result<(), Error> {
        for (at, webhook) in webhooks.iter().enumerate() {
            let own = format!("{id}-{at}");
            let secrets = Secrets::new(SigningSecret::parse(&webhook.secret, "secret")?, None);
            let new = NewWebhook {
                tenant: tenant.to_owned(),
                principal: principal.to_owned(),
                url: webhook.url.clone(),
                format: webhook.format.as_str(),
                own: true,
                submission_id: Some(id.clone()),
                filter: WebhookFilter { states: words(&webhook.states), ..WebhookFilter::default() },
                secrets: secrets.seal(&own, &self.keys)?,
                expires_in: None,
                id: own,
            };
            self.store.attach_webhook(&new).await?;
        }
        Ok(())
    }

    /// Deletes the webhooks of a submission that wasn't accepted under this id.
    pub(in crate::service) async fn detach(
        &self,
        id: &SubmissionId,
        webhooks: &[SubmissionWebhook],
    ) -> Result<(), Error> {
        match webhooks.is_empty() {
            true => Ok(()),
            false => Ok(self.store.detach_webhooks(id).await?),
        }
    }
}

pub(super) fn words(states: &[State]) -> Vec<String> {
    states.iter().map(|state| state.as_str().to_owned()).collect()
}
