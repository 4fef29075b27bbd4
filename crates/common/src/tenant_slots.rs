//! Caps on what the callers of a tenant may hold at the same time: subscriptions, and logs that are read. Like the rate limits, they
//! are those of this replica.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::rate_limits::Exceeded;
use sparkgate_metrics::metrics;

/// When a client may try again: a slot may become free at any time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

type Counts = Arc<Mutex<HashMap<String, u32>>>;

/// The slots that each tenant holds, of one kind. They outlast a change of the access file.
#[derive(Debug)]
pub struct TenantSlots {
    /// The name of the cap in the access file.
    limit: &'static str,
    held: Counts,
}

/// One slot of each of some tenants, until it is dropped.
#[derive(Debug)]
pub struct TenantSlot {
    held: Counts,
    tenants: Vec<String>,
}

impl TenantSlots {
    pub fn new(limit: &'static str) -> Self {
        Self { limit, held: Counts::default() }
    }

    /// Takes a slot of each of these tenants, which have these caps, or none at all.
    ///
    /// # Errors
    /// [`Exceeded`] if a tenant holds as many slots as its cap permits.
    pub fn take<'a>(&self, tenants: impl IntoIterator<Item = (&'a str, Option<u32>)>) -> Result<TenantSlot, Exceeded> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::new();
        for (tenant, most) in tenants {
            let count = held.get(tenant).copied().unwrap_or(0);
            if most.is_some_and(|most| count >= most) {
                metrics().requests_limited.with([self.limit]).inc();
                let (limit, tenant) = (self.limit, Some(tenant.to_owned()));
                return Err(Exceeded { limit, tenant, retry_after: Some(RETRY_AFTER) });
            }
            taken.push(tenant.to_owned());
        }
        for tenant in &taken {
            *held.entry(tenant.clone()).or_default() += 1;
        }
        Ok(TenantSlot { held: self.held.clone(), tenants: taken })
    }
}

impl TenantSlots {
    /// Returns how many slots each tenant holds, without those that hold none.
    pub fn held(&self) -> BTreeMap<String, u32> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|(tenant, count)| (tenant.clone(), *count)).collect()
    }
}

impl Drop for TenantSlot {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for tenant in &self.tenants {
            if let Some(count) = held.get_mut(tenant) {
                *count -= 1;
            }
        }
        held.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_holds_no_more_slots_than_its_cap() {
        let slots = TenantSlots::new("subscribers");
        let one = slots.take([("a", Some(2))]).unwrap();
        let two = slots.take([("a", Some(2)), ("b", None)]).unwrap();
        let exceeded = slots.take([("b", None), ("a", Some(2))]).unwrap_err();
        assert_eq!((exceeded.limit, exceeded.tenant.as_deref()), ("subscribers", Some("a")));
        assert_eq!(slots.held(), [("a".to_owned(), 2), ("b".to_owned(), 1)].into(), "a refused caller holds no slot");
        assert!(slots.take([("b", Some(2))]).is_ok());
        drop(one);
        assert!(slots.take([("a", Some(2))]).is_ok());
        drop(two);
        assert!(slots.held().is_empty(), "tenants without slots are removed");
        assert!(slots.take([("a", Some(0))]).is_err());
    }
}
