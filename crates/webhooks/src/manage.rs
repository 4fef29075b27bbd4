//! Creates, lists, rotates and deletes webhooks, shows their deliveries, and queues those again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ring::rand::{SecureRandom, SystemRandom};
use secrecy::SecretString;

use super::{
    Webhooks,
    attach::words,
    secrets::{Secrets, SigningSecret},
};
use sparkgate_access::{Action, Visible};
use sparkgate_common::{detached::to_its_end, error::Error};
use sparkgate_requests::options::webhook::MessageFormat;
use sparkgate_spark::Refusal;
use sparkgate_store::{Delivery, NewWebhook, Webhook, WebhookFilter};
use sparkgate_submission::{LONGEST_DURATION, State, SubmissionId};
use sparkgate_tenancy::session::Session;

/// The most webhooks of one tenant, not counting those of single submissions.
const MOST: i64 = 100;
/// How long the previous secret signs, too, after a rotation.
const OVERLAP_SECONDS: i32 = 24 * 3600;
/// The most bytes of a text of a filter, the most labels, and the most bytes of a bearer token.
const LONGEST_TEXT: usize = 253;
const MOST_LABELS: usize = 32;
const LONGEST_TOKEN: usize = 4096;

/// Whose submissions a webhook is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submissions {
    /// Those of the webhook's creator.
    Own,
    /// All of the tenant.
    Tenant,
}

/// What a new webhook is to be.
#[derive(Debug, Clone)]
pub struct WebhookRequest {
    pub url: String,
    /// The tenant; if there is none, the only one in which the caller may have this webhook.
    pub tenant: Option<String>,
    pub submissions: Submissions,
    pub format: MessageFormat,
    pub states: Vec<State>,
    pub name_prefix: Option<String>,
    pub owner: Option<String>,
    pub namespace: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// A secret of the client; one is generated otherwise.
    pub secret: Option<SecretString>,
    pub bearer_token: Option<SecretString>,
    /// `None` for a webhook without an end.
    pub expires_in: Option<Duration>,
}

/// A webhook with its new signing secret, which is known only here.
#[derive(Debug)]
pub struct CreatedWebhook {
    pub webhook: Webhook,
    pub secret: SecretString,
}

impl Webhooks {
    /// Creates a webhook.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may not have it; [`Error::Refused`] for a field that can't be used.
    pub async fn create(self: &Arc<Self>, caller: &Session, request: WebhookRequest) -> Result<CreatedWebhook, Error> {
        let (this, caller) = (self.clone(), caller.clone());
        // A webhook isn't left behind whose secret was never sent because the client disconnected early.
        to_its_end(async move { this.insert(&caller, request).await }, Error::BrokenOff).await
    }

    async fn insert(&self, caller: &Session, request: WebhookRequest) -> Result<CreatedWebhook, Error> {
        request.tenant.iter().for_each(|tenant| caller.aims_at(tenant));
        let tenant = tenant(caller, &request)?;
        let url = self.settings.check(&request.url).map_err(|reason| Refusal::field("url", reason))?;
        let secret = match &request.secret {
            Some(secret) => SigningSecret::parse(secret, "secret")?,
            None => SigningSecret::generate()?,
        };
        check_token(request.bearer_token.as_ref())?;
        if request.expires_in.is_some_and(|life| life.is_zero() || life > LONGEST_DURATION) {
            let reason = "a webhook lives for at least a second and at most ten years";
            return Err(Refusal::field("expiresInSeconds", reason).into());
        }
        let filter = filter(&request)?;
        let id = new_id()?;
        let secrets = Secrets::new(secret.clone(), request.bearer_token.as_ref());
        let new = NewWebhook {
            secrets: secrets.seal(&id, &self.keys)?,
            id,
            tenant,
            principal: caller.principal().subject().to_owned(),
            url: request.url,
            format: request.format.as_str(),
            own: request.submissions == Submissions::Own,
            submission_id: None,
            filter,
            expires_in: request.expires_in.and_then(|life| i64::try_from(life.as_secs()).ok()),
        };
        let created = self.store.create_webhook(&new, MOST, caller.actor().as_ref()).await?;
        let webhook = created.ok_or_else(|| {
            let reason = format!("tenant {} has {MOST} webhooks already: delete one that isn't needed", new.tenant);
            Refusal::field("tenant", reason)
        })?;
        let host = url.host_str().unwrap_or_default();
        tracing::info!(webhook = webhook.id, tenant = webhook.tenant, host, by = webhook.principal, "webhook created");
        Ok(CreatedWebhook { webhook, secret: secret.text() })
    }

    /// Returns the webhooks that the caller may manage, the newest first: those of one submission, or those of none.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may manage none.
    pub async fn list(&self, caller: &Session, submission: Option<&SubmissionId>) -> Result<Vec<Webhook>, Error> {
        caller.require(Action::ManageOwnWebhooks)?;
        Ok(self.store.scoped(&caller.webhook_owners()).webhooks(submission).await?)
    }

    /// Returns a webhook that the caller may manage.
    ///
    /// # Errors
    /// As for [`Webhooks::list`].
    pub async fn get(&self, caller: &Session, id: &str) -> Result<Option<Webhook>, Error> {
        caller.require(Action::ManageOwnWebhooks)?;
        Ok(self.store.scoped(&caller.webhook_owners()).webhook(id).await?)
    }

    /// Gives a webhook a new signing secret. The previous one signs, too, for a day. `None` if there is no such webhook.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may manage none, or it is that of the installation; [`Error::Internal`] if the secrets can't be
    /// decrypted.
    pub async fn rotate(self: &Arc<Self>, caller: &Session, id: &str) -> Result<Option<CreatedWebhook>, Error> {
        let (this, caller, id) = (self.clone(), caller.clone(), id.to_owned());
        to_its_end(async move { this.replace_secret(&caller, &id).await }, Error::BrokenOff).await
    }

    async fn replace_secret(&self, caller: &Session, id: &str) -> Result<Option<CreatedWebhook>, Error> {
        caller.require(Action::ManageOwnWebhooks)?;
        let webhooks = self.store.scoped(&caller.webhook_owners());
        self.check_changeable(&webhooks, id, caller).await?;
        let secret = SigningSecret::generate()?;
        loop {
            let Some(stored) = webhooks.webhook_secrets(id).await? else { return Ok(None) };
            let secrets = Secrets::unseal(id, stored.clone(), &self.keys)?.rotated(secret.clone());
            let sealed = secrets.seal(id, &self.keys)?;
            let rotated =
                webhooks.rotate_webhook(id, &stored, &sealed, OVERLAP_SECONDS, caller.actor().as_ref()).await?;
            // Another rotation came first, or the webhook is gone.
            let Some(webhook) = rotated else { continue };
            let by = caller.principal().subject();
            tracing::info!(webhook = id, tenant = webhook.tenant, by, "secret of a webhook rotated");
            return Ok(Some(CreatedWebhook { webhook, secret: secret.text() }));
        }
    }

    /// Deletes a webhook. What is queued for it is not sent. `false` if there is no such webhook.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may manage none, or it is that of the installation.
    pub async fn delete(&self, caller: &Session, id: &str) -> Result<bool, Error> {
        caller.require(Action::ManageOwnWebhooks)?;
        let webhooks = self.store.scoped(&caller.webhook_owners());
        self.check_changeable(&webhooks, id, caller).await?;
        let deleted = webhooks.delete_webhook(id, caller.actor().as_ref()).await?;
        if deleted {
            tracing::info!(webhook = id, by = caller.principal().subject(), "webhook deleted");
        }
        Ok(deleted)
    }

    /// Returns up to `limit` deliveries of a webhook, the newest first, with ids below `before`. `None` if there is no such webhook.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may manage none.
    pub async fn deliveries(
        &self,
        caller: &Session,
        id: &str,
        status: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Option<Vec<Delivery>>, Error> {
        caller.require(Action::ManageOwnWebhooks)?;
        Ok(self.store.scoped(&caller.webhook_owners()).deliveries(id, status, before, limit).await?)
    }

    /// Queues a delivery again that has ended, or all that were given up, and returns how many there were. `None` if there is no such
    /// webhook.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may manage none.
    pub async fn replay(&self, caller: &Session, id: &str, delivery: Option<i64>) -> Result<Option<u64>, Error> {
        caller.require(Action::ManageOwnWebhooks)?;
        let webhooks = self.store.scoped(&caller.webhook_owners());
        if webhooks.webhook(id).await?.is_none() {
            return Ok(None);
        }
        let deliveries = webhooks.replay_deliveries(id, delivery, caller.actor().as_ref()).await?;
        if deliveries > 0 {
            self.replayed.notify_one();
            let by = caller.principal().subject();
            tracing::info!(webhook = id, deliveries, by, "deliveries of a webhook queued again");
        }
        Ok(Some(deliveries))
    }
}

/// Returns the tenant of a new webhook.
fn tenant(caller: &Session, request: &WebhookRequest) -> Result<String, Error> {
    let (access, principal) = (caller.access(), caller.principal());
    let (action, whose) = match request.submissions {
        Submissions::Own => (Action::ManageOwnWebhooks, "its own submissions"),
        Submissions::Tenant => (Action::ManageWebhooks, "all submissions"),
    };
    let denied = |place: &str| {
        let subject = principal.subject();
        let remedy = match request.submissions {
            Submissions::Tenant => "; a submitter may have webhooks with \"submissions\": \"own\"",
            Submissions::Own => "",
        };
        Error::Denied(format!("{subject} may not have webhooks for {whose} {place}{remedy}"))
    };
    match &request.tenant {
        Some(tenant) if access.tenant(tenant).is_some() && access.may(principal, action, tenant) => Ok(tenant.clone()),
        Some(tenant) => Err(denied(&format!("in tenant {tenant}"))),
        None => {
            let tenants: Vec<String> = match access.tenants_for(principal, action) {
                Visible::All => access.tenants().map(|tenant| tenant.name.clone()).collect(),
                Visible::Tenants(names) => names.into_iter().collect(),
            };
            match <[String; 1]>::try_from(tenants) {
                Ok([only]) => Ok(only),
                Err(none) if none.is_empty() => Err(denied("in any tenant")),
                Err(several) => {
                    let reason = format!("the tenant of the webhook: one of {}", several.join(", "));
                    Err(Refusal::field("tenant", reason).into())
                }
            }
        }
    }
}

/// Checks the filter of a request.
fn filter(request: &WebhookRequest) -> Result<WebhookFilter, Refusal> {
    let WebhookRequest { states, name_prefix, owner, namespace, labels, .. } = request;
    let texts = [("name", name_prefix), ("owner", owner), ("namespace", namespace)];
    let texts = texts.into_iter().filter_map(|(field, text)| Some((field, text.as_deref()?)));
    let labels_texts = labels.iter().flat_map(|(key, value)| [("labels", key.as_str()), ("labels", value.as_str())]);
    for (field, text) in texts.chain(labels_texts) {
        if text.len() > LONGEST_TEXT || text.contains('\0') {
            let reason = format!("a text has at most {LONGEST_TEXT} bytes, and no NUL character");
            return Err(Refusal::field(format!("filter.{field}"), reason));
        }
    }
    if labels.len() > MOST_LABELS {
        return Err(Refusal::field("filter.labels", format!("{} labels: there may be {MOST_LABELS}", labels.len())));
    }
    Ok(WebhookFilter {
        states: words(states),
        name_prefix: name_prefix.clone(),
        owner: owner.clone(),
        namespace: namespace.clone(),
        labels: labels.clone(),
    })
}

/// Checks a token, which becomes a part of a header.
fn check_token(token: Option<&SecretString>) -> Result<(), Refusal> {
    use secrecy::ExposeSecret;
    let is_fine = |text: &str| {
        !text.is_empty() && text.len() <= LONGEST_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match token {
        Some(token) if !is_fine(token.expose_secret()) => {
            let reason = format!("a token has up to {LONGEST_TOKEN} visible ASCII characters");
            Err(Refusal::field("bearerToken", reason))
        }
        _ => Ok(()),
    }
}

/// Returns a random id.
fn new_id() -> Result<String, Error> {
    let mut bytes = [0; 8];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|error| Error::Internal("generating the id of a webhook".to_owned(), error.into()))?;
    Ok(format!("wh_{:016x}", u64::from_be_bytes(bytes)))
}
