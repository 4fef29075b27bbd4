//! A tenant with its compiled policy.

use sparkgate_access::{Namespaces, Tenant};
use sparkgate_policy::{Policy, PolicyDocument};

use crate::error::AdmissionError;

/// What the objects of a tenant are generated from.
pub(crate) struct TenantRules<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespaces: &'a [String],
    /// The accounts of drivers and executors. If it is empty, all accounts of the namespaces are.
    pub(crate) accounts: &'a [String],
    pub(crate) policy: Policy,
}

impl<'a> TenantRules<'a> {
    /// Compiles the policy of a tenant. A tenant without one has the default of each rule.
    pub(crate) fn new(tenant: &'a Tenant) -> Result<Self, AdmissionError> {
        let Namespaces::Listed(namespaces) = &tenant.namespaces else { return Err(AdmissionError::NoNamespaces) };
        let document: PolicyDocument = match &tenant.policy {
            None => PolicyDocument::default(),
            Some(document) => serde_json::from_value(document.clone())
                .map_err(|source| AdmissionError::Unreadable { tenant: tenant.name.clone(), source })?,
        };
        let policy = Policy::compile(document, &tenant.service_accounts)
            .map_err(|faults| AdmissionError::Faults { tenant: tenant.name.clone(), faults })?;
        Ok(Self { name: &tenant.name, namespaces, accounts: &tenant.service_accounts, policy })
    }
}
