//! Webhooks of a single submission, which its request names.

use futures::{FutureExt, future::ready};

use super::{
    Webhooks, parent_run,
    secrets::{Secrets, SigningSecret},
};
use sparkgate_cluster::Manifest;
use sparkgate_common::error::Error;
use sparkgate_core::ports::{Attachment, Attempt, Proposed, Resolution, Step};
use sparkgate_requests::options::webhook::SubmissionWebhook;
use sparkgate_spark::Refusal;
use sparkgate_store::{NewWebhook, WebhookFilter};
use sparkgate_submission::{State, SubmissionId};

/// The most webhooks of one submission.
const MOST: usize = 4;

impl Attachment for Webhooks {
    fn validate(&self, proposed: &Proposed<'_>) -> Result<(), Refusal> {
        let webhooks = &proposed.options.webhooks;
        if webhooks.len() > MOST {
            return Err(Refusal::field("webhooks", format!("{} webhooks: there may be {MOST}", webhooks.len())));
        }
        for (at, webhook) in webhooks.iter().enumerate() {
            let checked = self.settings.check(&webhook.url);
            checked.map_err(|reason| Refusal::field(format!("webhooks[{at}].url"), reason))?;
            SigningSecret::parse(&webhook.secret, &format!("webhooks[{at}].secret"))?;
        }
        Ok(())
    }

    fn attach<'a>(&'a self, id: &'a SubmissionId, proposed: &'a Proposed<'a>) -> Step<'a, ()> {
        let Proposed { tenant, principal, options, .. } = proposed;
        (!options.webhooks.is_empty()).then(|| self.store_all(id, (tenant, principal), &options.webhooks).boxed())
    }

    fn resolve<'a>(&'a self, attempt: &'a Attempt<'a>, manifest: &'a mut Manifest) -> Step<'a, Resolution> {
        self.lineage.as_ref()?;
        let resolution = parent_run::name(self.installation.id, attempt, manifest)?;
        Some(ready(Ok(resolution)).boxed())
    }

    fn detach<'a>(&'a self, id: &'a SubmissionId) -> Step<'a, ()> {
        Some(async move { Ok(self.store.detach_webhooks(id).await?) }.boxed())
    }
}

impl Webhooks {
    /// Stores the webhooks of a submission.
    async fn store_all(
        &self,
        id: &SubmissionId,
        (tenant, principal): (&str, &str),
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
}

pub(super) fn words(states: &[State]) -> Vec<String> {
    states.iter().map(|state| state.as_str().to_owned()).collect()
}
