//! API keys: created, listed and revoked by operators, and by the command `sparkgate token` on the gateway's database.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::Utc;
use secrecy::SecretString;

use crate::session::Session;
use sparkgate_access::{Action, ApiKey, Provider, Role};
use sparkgate_common::{
    detached::to_its_end,
    error::{Error, error_chain},
};
use sparkgate_spark::Refusal;
use sparkgate_store::{self, NewApiKey, Store};
use sparkgate_submission::LONGEST_DURATION;

/// The longest name of a key.
const NAME_MAX: usize = 128;

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct KeyRequest {
    pub name: String,
    /// `None` for all tenants.
    pub tenant: Option<String>,
    pub role: Role,
    /// `None` for a key that never expires.
    pub expires_in: Option<Duration>,
}

/// A new key. Its text is known only here.
#[derive(Debug)]
pub struct CreatedKey {
    pub key: sparkgate_store::ApiKey,
    pub text: SecretString,
}

/// The most names that are remembered.
const REMEMBERED: usize = 10_000;

/// The API keys of the database.
#[derive(Debug)]
pub struct ApiKeys {
    store: Store,
    /// The names by id. A key is never renamed.
    names: Mutex<HashMap<String, Arc<str>>>,
}

/// The names of API keys, by the subjects of their principals.
#[derive(Debug, Clone, Default)]
pub struct KeyNames(HashMap<String, Arc<str>>);

impl KeyNames {
    /// Returns the name of the key that a subject stands for; `None` for other principals.
    pub fn of(&self, subject: &str) -> Option<&str> {
        self.0.get(subject).map(AsRef::as_ref)
    }
}

impl ApiKeys {
    pub fn new(store: Store) -> Self {
        Self { store, names: Mutex::default() }
    }

    /// Returns the names of the API keys among these subjects. Reads the database for those that aren't remembered. While it doesn't
    /// answer, they are missing.
    pub async fn names(&self, subjects: impl IntoIterator<Item = &str>) -> KeyNames {
        let prefix = format!("{}:", Provider::ApiKey.prefix());
        let ids: HashSet<&str> = subjects.into_iter().filter_map(|subject| subject.strip_prefix(&prefix)).collect();
        let remembered = |id: &str| self.names.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let unknown: Vec<&str> = ids.iter().copied().filter(|id| remembered(id).is_none()).collect();
        if !unknown.is_empty() {
            match self.store.api_key_names(&unknown).await {
                Ok(read) => {
                    let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
                    if names.len() + read.len() > REMEMBERED {
                        names.clear();
                    }
                    names.extend(read.into_iter().map(|(id, name)| (id, name.into())));
                }
                Err(error) => tracing::debug!("the names of API keys can't be read: {}", error_chain(&error)),
            }
        }
        KeyNames(ids.into_iter().filter_map(|id| Some((format!("{prefix}{id}"), remembered(id)?))).collect())
    }

    /// Creates a key with at most the caller's own rights.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may not grant this; [`Error::Refused`] for a name or a lifetime that can't be used.
    pub async fn create(self: &Arc<Self>, caller: &Session, request: KeyRequest) -> Result<CreatedKey, Error> {
        let (this, caller) = (self.clone(), caller.clone());
        // A key isn't left behind whose text was never sent because the client disconnected early.
        to_its_end(async move { this.grant(&caller, &request).await }, Error::BrokenOff).await
    }

    async fn grant(&self, caller: &Session, request: &KeyRequest) -> Result<CreatedKey, Error> {
        request.tenant.iter().for_each(|tenant| caller.aims_at(tenant));
        may_grant(caller, request)?;
        let now = Utc::now();
        let own_end = caller.principal().expires().filter(|_| *caller.principal().provider() == Provider::ApiKey);
        if let Some(end) = own_end
            && request.expires_in.is_none_or(|life| now + life > end)
        {
            let reason = format!(
                "a key that an API key creates may not outlive it: it expires at {end}. Ask for a shorter life, or let an operator \
                 create a key that lives longer: `sparkgate bootstrap-key --expires 365d`"
            );
            return Err(Error::Denied(reason));
        }
        let by = caller.principal().subject().to_owned();
        self.insert(request, by, caller.actor().as_ref()).await
    }

    /// Creates a key for an operator who can reach the database, without a caller.
    ///
    /// # Errors
    /// [`Error::Refused`], or an error of the database.
    pub async fn create_by_operator(&self, request: &KeyRequest) -> Result<CreatedKey, Error> {
        self.insert(request, "database".to_owned(), None).await
    }

    async fn insert(
        &self,
        request: &KeyRequest,
        created_by: String,
        actor: Option<&sparkgate_store::Actor>,
    ) -> Result<CreatedKey, Error> {
        let KeyRequest { name, tenant, role, expires_in } = request;
        check_name(name)?;
        if *role == Role::Admin && tenant.is_some() {
            return Err(Refusal::field("role", "admin is a role of all tenants: leave the tenant out").into());
        }
        if expires_in.is_some_and(|life| life.is_zero() || life > LONGEST_DURATION) {
            return Err(
                Refusal::field("expiresInSeconds", "a key lives for at least a second and at most ten years").into()
            );
        }
        let key = ApiKey::generate().map_err(|error| Error::Internal("generating an API key".into(), error.into()))?;
        let new = NewApiKey {
            id: key.id().to_owned(),
            digest: key.digest().as_bytes().to_vec(),
            name: name.clone(),
            tenant: tenant.clone(),
            role: role.to_string(),
            created_by,
            expires_in: expires_in.and_then(|life| i64::try_from(life.as_secs()).ok()),
        };
        let created = self.store.create_api_key(&new, actor).await?;
        tracing::info!(key = created.id, tenant, %role, by = created.created_by, "API key created");
        Ok(CreatedKey { key: created, text: key.text().clone() })
    }

    /// Returns the keys of the tenants whose keys the caller may manage, the newest first.
    ///
    /// # Errors
    /// [`Error::Denied`] if there is no such tenant.
    pub async fn list(&self, caller: &Session) -> Result<Vec<sparkgate_store::ApiKey>, Error> {
        caller.require(Action::ManageKeys)?;
        Ok(self.store.scoped(&caller.key_owners()).api_keys().await?)
    }

    /// Revokes a key. `false` if there is none with this id, or none that the caller may manage.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller may manage none.
    pub async fn revoke(&self, caller: &Session, id: &str) -> Result<bool, Error> {
        caller.require(Action::ManageKeys)?;
        let keys = self.store.scoped(&caller.key_owners());
        let revoked = keys.revoke_api_key(id, caller.principal().subject(), caller.actor().as_ref()).await?;
        if revoked {
            tracing::info!(key = id, by = caller.principal().subject(), "API key revoked");
        }
        Ok(revoked)
    }
}

/// Checks the name of a key: it is printed in lists and in the log.
fn check_name(name: &str) -> Result<(), Refusal> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._@/-".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_MAX && name.bytes().all(fine) {
        return Ok(());
    }
    let reason =
        format!("a name has up to {NAME_MAX} letters, digits and `._@/-`, and begins with a letter or a digit");
    Err(Refusal::field("name", reason))
}

/// Checks that the caller may grant a role: it manages the keys there, and has the role itself.
fn may_grant(caller: &Session, request: &KeyRequest) -> Result<(), Error> {
    let (access, principal) = (caller.access(), caller.principal());
    let own = match &request.tenant {
        Some(tenant) => access.role_in(principal, tenant),
        None => access.role_everywhere(principal),
    };
    let place = request.tenant.as_deref().map_or_else(|| "all tenants".to_owned(), |tenant| format!("tenant {tenant}"));
    if own < Some(Action::ManageKeys.least_role()) {
        return Err(Error::Denied(format!("{} may not create API keys for {place}", principal.subject())));
    }
    if own < Some(request.role) {
        let reason = format!("{} has no role {} in {place} and can't grant it", principal.subject(), request.role);
        return Err(Error::Denied(reason));
    }
    if request.tenant.as_ref().is_some_and(|tenant| access.tenant(tenant).is_none()) {
        return Err(Error::Denied("the access file has no such tenant".to_owned()));
    }
    Ok(())
}
