//! Prices of what submissions reserve.

use std::collections::BTreeMap;

/// Prices as decimal numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    pub core_hour: String,
    pub gib_hour: String,
}

/// The prices of tenants, and the one of all others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    pub of_tenant: BTreeMap<String, Price>,
    pub other: Option<Price>,
}

impl Prices {
    pub(super) fn are_set(&self) -> bool {
        self.other.is_some() || !self.of_tenant.is_empty()
    }
}
