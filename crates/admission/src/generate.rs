//! All objects of an access file.

use std::num::NonZeroU32;

use sparkgate_access::Access;

use crate::{
    admission_policy, error::AdmissionError, gateway::GatewayAccount, namespace, network, object::Object, rbac,
    tenant::TenantRules,
};

/// Generates the objects that enforce the boundaries of all tenants, in the order in which they can be applied.
///
/// `applications` is the number of applications that may run in a namespace at once, each as large as the policy of its tenant
/// permits: the limits of a policy are those of one application, and those of a `ResourceQuota` are those of a namespace.
///
/// # Errors
/// There is no access file, so that there are no boundaries; a policy can't be compiled; or the gateway runs in a namespace of a
/// tenant.
pub fn objects(
    access: &Access,
    gateway: &GatewayAccount,
    applications: NonZeroU32,
) -> Result<Vec<Object>, AdmissionError> {
    let tenants = access.tenants().map(TenantRules::new).collect::<Result<Vec<_>, _>>()?;
    if let Some(tenant) = access.tenant_of_namespace(&gateway.namespace) {
        return Err(AdmissionError::GatewayInTenant { gateway: gateway.clone(), tenant: tenant.name.clone() });
    }
    let mut objects = Vec::new();
    for tenant in &tenants {
        for namespace in tenant.namespaces {
            objects.push(namespace::namespace(tenant, namespace));
            objects.extend(namespace::quota(tenant, namespace, applications));
            objects.push(network::ingress(namespace, gateway));
            objects.extend(rbac::drivers(tenant, namespace));
            objects.extend(rbac::gateway(tenant, gateway, namespace, access.queues().learns_capacity));
        }
    }
    objects.extend(admission_policy::marks(&tenants, gateway));
    objects.extend(tenants.iter().flat_map(|tenant| admission_policy::tenant(tenant, gateway)));
    objects.extend(tenants.iter().flat_map(|tenant| admission_policy::claims(tenant, gateway)));
    objects.extend(rbac::check(&tenants, gateway));
    Ok(objects)
}
