//! Finds API keys and webhooks that outlive the right of their creator. A member that has its role by a group of an issuer can't be
//! judged: only the issuer knows who is in a group.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{database::not_read, finding::Finding};
use sparkgate_access::{Access, Authentication, Provider};
use sparkgate_common::error::error_chain;
use sparkgate_store::{self, ApiKey, Store};

const CHECK: &str = "access.creators";
/// The most that one line names.
const NAMED: usize = 10;

/// Checks that the creators of API keys and webhooks, and their tenants, still exist.
pub async fn check_creators(store: &Store, access: &Access) -> Finding {
    let Some(providers) = access.authentication() else {
        return Finding::ok(CHECK, "callers are not authenticated, so no API key counts");
    };
    let all = store.all();
    match (all.api_keys().await, all.webhooks(None).await) {
        (Ok(keys), Ok(webhooks)) => {
            let webhooks: Vec<_> = webhooks
                .iter()
                .filter(|webhook| !webhook.is_of_installation())
                .map(|webhook| (webhook.id.as_str(), webhook.tenant.as_str(), webhook.principal.as_str()))
                .collect();
            found(&orphans(&keys, &webhooks, access, providers, Utc::now()))
        }
        (Err(error), _) | (_, Err(error)) => unread(&error),
    }
}

fn unread(error: &sparkgate_store::Error) -> Finding {
    not_read(CHECK, &error_chain(error))
}

fn found(orphans: &[String]) -> Finding {
    if orphans.is_empty() {
        return Finding::ok(
            CHECK,
            "the tenants and creators of all API keys and webhooks exist, as far as the access file says",
        );
    }
    let more = orphans.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let text =
        format!("what outlives the right of its creator: {}{more}", orphans[..orphans.len().min(NAMED)].join("; "));
    let remedy = "revoke such keys (`sparkgate token revoke ID`), and delete such webhooks (DELETE /v1/webhooks/ID)";
    Finding::warning(CHECK, text, remedy)
}

/// Returns a line for each key and each webhook whose creator or tenant is gone.
fn orphans(
    keys: &[ApiKey],
    webhooks: &[(&str, &str, &str)],
    access: &Access,
    providers: &Authentication,
    now: DateTime<Utc>,
) -> Vec<String> {
    let counts = |key: &ApiKey| key.revoked_at.is_none() && key.expires_at.is_none_or(|end| now < end);
    let by_id: BTreeMap<&str, &ApiKey> = keys.iter().map(|key| (key.id.as_str(), key)).collect();
    let why = |tenant: Option<&str>, creator: &str| {
        if let Some(tenant) = tenant.filter(|tenant| access.tenant(tenant).is_none()) {
            return Some(format!("there is no tenant {tenant}"));
        }
        match creator.split_once(':') {
            Some((prefix, id)) if prefix == Provider::ApiKey.prefix() => {
                let is_good = by_id.get(id).is_some_and(|key| counts(key));
                (!is_good).then(|| format!("{creator}, which created it, is no valid key"))
            }
            Some((prefix, _)) if !is_configured(prefix, providers) => {
                Some(format!("no provider vouches for {creator}, which created it"))
            }
            // `database` is an operator at the database.
            _ => None,
        }
    };
    let keys = keys.iter().filter(|key| counts(key)).filter_map(|key| {
        let why = why(key.tenant.as_deref(), &key.created_by)?;
        Some(format!("key {} ({}): {why}", key.id, key.name))
    });
    let webhooks = webhooks.iter().filter_map(|(id, tenant, principal)| {
        let why = why(Some(tenant), principal)?;
        Some(format!("webhook {id}: {why}"))
    });
    keys.chain(webhooks).collect()
}

/// Returns whether the access file has the provider of a subject.
fn is_configured(prefix: &str, providers: &Authentication) -> bool {
    let others = [
        (Provider::Kubernetes, providers.kubernetes.is_some()),
        (Provider::Certificate, providers.certificates.is_some()),
        (Provider::Proxy, providers.proxy.is_some()),
        (Provider::SparkJws, providers.spark_jws.is_some()),
        (Provider::SparkListener, providers.spark_listener.is_some()),
    ];
    providers.oidc.iter().any(|issuer| issuer.name == prefix)
        || others.iter().any(|(provider, is_configured)| *is_configured && provider.prefix() == prefix)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn keys_and_webhooks_whose_creator_or_tenant_is_gone_are_named() {
        let access =
            Access::parse("authentication: {kubernetes: {audience: a}}\ntenants: {red: {namespaces: [red]}}").unwrap();
        let now = Utc::now();
        let key = |id: &str, tenant: Option<&str>, by: &str, revoked: bool| ApiKey {
            id: id.to_owned(),
            name: "n".to_owned(),
            tenant: tenant.map(str::to_owned),
            role: "viewer".to_owned(),
            created_at: now,
            created_by: by.to_owned(),
            expires_at: (id == "old").then(|| now - TimeDelta::seconds(1)),
            revoked_at: revoked.then_some(now),
            last_used_at: None,
        };
        let keys = [
            key("1", Some("red"), "database", false),
            key("2", Some("red"), "key:1", false),
            key("3", None, "kubernetes:alice", false),
            key("4", Some("gone"), "database", false),
            key("5", Some("red"), "key:revoked", false),
            key("6", Some("red"), "corp:alice", false),
            key("7", Some("red"), "key:old", false),
            key("revoked", Some("gone"), "corp:alice", true),
            key("old", Some("gone"), "corp:alice", false),
        ];
        let webhooks = [("wh_1", "red", "key:1"), ("wh_2", "gone", "key:1"), ("wh_3", "red", "key:none")];
        let found = orphans(&keys, &webhooks, &access, access.authentication().unwrap(), now);
        let of: Vec<_> = found.iter().filter_map(|line| line.split([' ', ':']).nth(1)).collect();
        assert_eq!(of, ["4", "5", "6", "7", "wh_2", "wh_3"], "{found:?}");
        assert!(super::found(&found).message.contains("there is no tenant gone"));
        assert_eq!(super::found(&[]).level, crate::doctor::finding::Level::Ok);
    }
}
