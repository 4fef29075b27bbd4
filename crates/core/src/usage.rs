//! What submissions used, for those who may read them, and what it cost.

use sparkgate_common::error::Error;
use sparkgate_store::{GroupBy, Price, Prices, Store, UsageFilter, UsageReport};
use sparkgate_tenancy::session::Session;

/// The operator's prices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceSettings {
    /// Of tenants without prices of their own.
    pub price: Option<Price>,
    /// The currency of all prices, such as EUR.
    pub currency: Option<String>,
}

/// Computes usage from the rows of submissions.
#[derive(Debug)]
pub struct Usage {
    store: Store,
    settings: PriceSettings,
}

impl Usage {
    pub fn new(store: Store, settings: PriceSettings) -> Self {
        Self { store, settings }
    }

    /// Returns the currency of costs.
    pub fn currency(&self) -> Option<&str> {
        self.settings.currency.as_deref()
    }

    /// Returns what the submissions that the caller may read used in a range of days, in at most `limit` groups.
    pub async fn report(
        &self,
        caller: &Session,
        filter: &UsageFilter,
        group_by: &[GroupBy],
        limit: u32,
    ) -> Result<UsageReport, Error> {
        Ok(self.store.scoped(&caller.readable()).usage(filter, group_by, &self.prices(caller), limit).await?)
    }

    pub fn prices(&self, caller: &Session) -> Prices {
        let of_tenant = caller.access().tenants().filter_map(|tenant| {
            let prices = tenant.prices.clone()?;
            Some((tenant.name.clone(), Price { core_hour: prices.core_hour, gib_hour: prices.gib_hour }))
        });
        Prices { of_tenant: of_tenant.collect(), other: self.settings.price.clone() }
    }
}
