//! The policy of a tenant.

use std::sync::Arc;

use crate::{Fault, Judged, Violation, compiled::Rules, document::PolicyDocument, judgement::Judgement, rules};

/// A compiled policy. It is immutable, and clones share it.
#[derive(Debug, Clone)]
pub struct Policy(Arc<Rules>);

impl Policy {
    /// Compiles a document. `service_accounts` are those of the tenant; if there are none, pods may run as any.
    ///
    /// # Errors
    /// All faults of the document: patterns, quantities, words and expressions that can't be compiled.
    pub fn compile(document: PolicyDocument, service_accounts: &[String]) -> Result<Self, Vec<Fault>> {
        Rules::compile(document, service_accounts).map(|rules| Self(Arc::new(rules)))
    }

    /// Returns all violations of a driver. A driver without any may be created.
    ///
    /// It must be called before the gateway marks the objects as its own: a label below `sparkgate.dev/` is a violation.
    pub fn judge(&self, driver: &Judged<'_>) -> Vec<Violation> {
        let mut judgement = Judgement::new(&self.0, driver);
        rules::judge(&mut judgement);
        judgement.into_violations()
    }
}
