//! All objects of an access file.

use std::num::NonZeroU32;

use sparkgate_access::Access;
use sparkgate_policy::Fault;
use thiserror::Error;

use crate::{admission_policy, gateway::GatewayAccount, namespace, network, object::Object, rbac, tenant::TenantRules};

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
            objects.push(network::ingress(namespace));
            objects.extend(rbac::drivers(tenant, namespace));
            objects.extend(rbac::gateway(gateway, namespace));
        }
    }
    objects.extend(admission_policy::marks(&tenants, gateway));
    objects.extend(tenants.iter().flat_map(|tenant| admission_policy::tenant(tenant, gateway)));
    objects.extend(rbac::check(&tenants, gateway));
    Ok(objects)
}

/// Why no objects can be generated.
#[derive(Debug, Error)]
pub enum AdmissionError {
    #[error("there is no access file, so there are no tenants: write one (docs/access.md)")]
    NoAccessFile,
    #[error("the policy of tenant {tenant} can't be read: correct it in the access file (docs/policy.md)")]
    Unreadable {
        tenant: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("the policy of tenant {tenant} is invalid: {}", listed(.faults))]
    Faults { tenant: String, faults: Vec<Fault> },
    #[error(
        "the gateway's account {gateway} is in a namespace of tenant {tenant}, whose pods could run as it: give the gateway a \
         namespace of its own"
    )]
    GatewayInTenant { gateway: GatewayAccount, tenant: String },
}

fn listed(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
