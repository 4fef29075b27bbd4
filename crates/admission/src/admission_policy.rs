//! Admission policies: which accounts may create and change which pods and claims
//! (<https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>).
//!
//! One policy guards the marks of the gateway in the namespaces of all tenants, and each tenant has one for its pods and one for the
//! claims of its drivers. They have no parameters, so that no object but the policy itself has to be protected.

mod claims;
mod marks;
mod policy;
mod tenant;

pub(crate) use claims::claims;
pub(crate) use marks::marks;
pub(crate) use tenant::tenant;

use crate::{gateway::GatewayAccount, tenant::TenantRules};

/// Returns the names of all admission policies, which are also those of their bindings.
pub(crate) fn names(tenants: &[TenantRules<'_>], gateway: &GatewayAccount) -> Vec<String> {
    let of_tenants = tenants.iter().flat_map(|tenant| [tenant::name(tenant, gateway), claims::name(tenant, gateway)]);
    [marks::name(gateway)].into_iter().chain(of_tenants).collect()
}
