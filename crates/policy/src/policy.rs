//! The policy of a tenant.

use std::sync::Arc;

use crate::{
    compiled::Rules,
    document::{PodSecurity, PolicyDocument},
    judged::Judged,
    judgement::Judgement,
    names::{MetadataKeys, Names},
    pattern::Patterns,
    quota::Quota,
    rules,
    violation::{Fault, Violation},
    volume,
};

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

    /// Returns whether the operator has rules of its own, which may take longer than all others.
    pub fn has_expressions(&self) -> bool {
        !self.0.cel.0.is_empty()
    }

    /// Returns the level of the Pod Security Standards that pods must meet.
    pub fn pod_security(&self) -> PodSecurity {
        self.0.document.pod_security
    }

    /// Returns a regular expression for the permitted images in their full form, `registry/repository:tag` or
    /// `registry/repository@digest`; `None` if any image is permitted. RE2 reads it too, which evaluates Kubernetes' own rules.
    pub fn images(&self) -> Option<&str> {
        self.0.images.as_ref().map(Patterns::expression)
    }

    /// Returns the document that the policy was compiled from.
    pub fn document(&self) -> &PolicyDocument {
        &self.0.document
    }

    /// Returns a regular expression, which RE2 reads too, for the names that a list of the policy permits; `None` if there is no
    /// such list.
    pub fn names(&self, names: Names) -> Option<&str> {
        self.0.names(names).map(Patterns::expression)
    }

    /// Returns regular expressions for the keys of metadata that are permitted, if only some are, and for those that are refused.
    pub fn metadata_keys(&self, keys: MetadataKeys) -> (Option<&str>, &str) {
        let (allow, deny) = self.0.metadata_keys(keys);
        (allow.map(Patterns::expression), deny.expression())
    }

    /// Returns whether the pods of the tenant may join queues of Kueue: the list of schedulers must name `kueue`.
    pub fn uses_kueue(&self) -> bool {
        self.0.uses_kueue()
    }

    /// Returns whether a pod may tolerate all taints at once.
    pub fn tolerates_all(&self) -> bool {
        self.0.tolerates_all()
    }

    /// Returns the permitted sources of projected volumes.
    pub fn projected_sources(&self) -> &[String] {
        &self.0.projected_sources
    }

    /// Returns the types of volumes that a pod may not have, by the names of Kubernetes' fields.
    pub fn forbidden_volumes(&self) -> impl Iterator<Item = &'static str> {
        volume::TYPES.iter().copied().filter(|kind| !self.permits_volume(kind))
    }

    /// Returns whether a pod may have volumes of this type.
    pub fn permits_volume(&self, kind: &str) -> bool {
        self.0.volumes.iter().any(|permitted| permitted == kind)
    }

    /// Returns the directories of the node below which `hostPath` volumes may be, in their normal form.
    pub fn host_paths(&self) -> &[String] {
        &self.0.host_paths
    }

    /// Returns what the pods of this many applications may request together.
    pub fn quota(&self, applications: u32) -> Quota {
        Quota::new(&self.0, applications)
    }
}
