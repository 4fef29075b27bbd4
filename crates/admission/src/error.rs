//! Why no objects can be generated.

use sparkgate_policy::Fault;
use thiserror::Error;

use crate::gateway::GatewayAccount;

/// Why no objects can be generated.
#[derive(Debug, Error)]
pub enum AdmissionError {
    #[error(
        "the tenant has all namespaces: list those that its drivers use in an access file (docs/operate/access.md)"
    )]
    NoNamespaces,
    #[error("the policy of tenant {tenant} can't be read: correct it in the access file (docs/operate/policy.md)")]
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
