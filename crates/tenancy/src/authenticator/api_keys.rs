//! API keys, which the database knows by their digests.

use std::{sync::Arc, time::Duration};

use super::{
    Unauthenticated,
    checks::{Checks, Gate},
};
use sparkgate_access::{ApiKey, Grant, KeyDigest, Principal};
use sparkgate_store::{self, KeyRecord, Store};

/// How long a key counts without asking the database. A key that is revoked is accepted for this long.
const FRESH: Duration = Duration::from_secs(5);

/// The API keys of the database.
pub(super) struct ApiKeys {
    store: Store,
    checks: Checks,
}

impl ApiKeys {
    pub(super) fn new(store: Store) -> Self {
        Self { store, checks: Checks::default() }
    }

    /// Returns the principal of a key.
    pub(super) async fn principal(&self, text: &str, gate: Gate<'_>) -> Result<Arc<Principal>, Unauthenticated> {
        // A key that is known isn't parsed.
        let check = async {
            let key = match ApiKey::parse(text) {
                Ok(key) => key,
                Err(error) => return Ok(Err(Unauthenticated::Invalid(error.to_string()))),
            };
            let record = self.store.valid_api_key(key.id(), key.digest().as_bytes()).await?;
            let principal = record.and_then(|record| principal(&record, &key));
            let wrong = "the API key is unknown, revoked or expired: create another one";
            Ok::<_, sparkgate_store::Error>(principal.ok_or_else(|| Unauthenticated::Invalid(wrong.to_owned())))
        };
        self.checks.principal(text, gate, FRESH, "the database, which knows the API keys,", check).await
    }

    /// Returns whether the key of a principal is still valid. While the database doesn't answer, it is.
    pub(super) async fn are_valid(&self, principal: &Principal) -> bool {
        let Some((_, id)) = principal.subject().split_once(':') else { return false };
        self.store.is_api_key_valid(id).await.unwrap_or(true)
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
    let principal = Principal::for_api_key(&key.id, &key.name, vec![grant], key.expires_at).ok()?;
    stored.matches(sent).then_some(principal)
}
