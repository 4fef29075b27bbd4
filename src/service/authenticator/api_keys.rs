//! API keys, which the database knows by their digests.

use std::{sync::Arc, time::Duration};

use super::{
    Unauthenticated,
    cache::{Cache, digest},
};
use crate::{
    access::{ApiKey, Grant, KeyDigest, Principal},
    service::error::error_chain,
    store::{KeyRecord, Store},
};

/// How long a key counts without asking the database. A key that is revoked is accepted for this long.
const FRESH: Duration = Duration::from_secs(5);
/// How long it counts while the database doesn't answer.
const STALE: Duration = Duration::from_secs(300);

/// The API keys of the database.
pub(super) struct ApiKeys {
    store: Store,
    known: Cache,
}

impl ApiKeys {
    pub(super) fn new(store: Store) -> Self {
        Self { store, known: Cache::default() }
    }

    /// Returns the principal of a key.
    pub(super) async fn principal(&self, text: &str) -> Result<Arc<Principal>, Unauthenticated> {
        let cached = digest(text);
        if let Some(known) = self.known.get(&cached, FRESH) {
            return Ok(known);
        }
        let key = ApiKey::parse(text).map_err(|error| Unauthenticated::Invalid(error.to_string()))?;
        match self.store.valid_api_key(key.id()).await {
            Ok(record) => match record.and_then(|record| principal(&record, &key)) {
                Some(principal) => {
                    let principal = Arc::new(principal);
                    self.known.put(cached, principal.clone(), STALE);
                    Ok(principal)
                }
                None => {
                    self.known.forget(&cached);
                    let wrong = "the API key is unknown, revoked or expired: create another one";
                    Err(Unauthenticated::Invalid(wrong.to_owned()))
                }
            },
            Err(error) => self.known.get(&cached, STALE).ok_or_else(|| {
                tracing::warn!("an API key can't be checked: {}", error_chain(&error));
                Unauthenticated::Unavailable("the database, which knows the API keys, is not available".to_owned())
            }),
        }
    }

    /// Returns whether the key of a principal is still valid. While the database doesn't answer, it is.
    pub(super) async fn are_valid(&self, principal: &Principal) -> bool {
        let Some((_, id)) = principal.subject().split_once(':') else { return false };
        self.store.valid_api_key(id).await.map_or(true, |key| key.is_some())
    }
}

/// Returns the principal of a stored key, if it is the one that was sent.
fn principal(record: &KeyRecord, sent: &ApiKey) -> Option<Principal> {
    let stored = KeyDigest::from_bytes(record.digest.as_slice().try_into().ok()?);
    let key = &record.key;
    let role = key.role.parse().ok()?;
    let grant = match &key.tenant {
        None => Grant::everywhere(role),
        Some(tenant) => Grant::in_tenant(role, tenant.clone()).ok()?,
    };
    let principal = Principal::of_api_key(&key.id, &key.name, vec![grant], key.expires_at).ok()?;
    stored.matches(sent).then_some(principal)
}
