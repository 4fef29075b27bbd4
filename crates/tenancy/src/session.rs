//! A caller of the use cases, and what it may do. Made once for each request, from a principal; every use case of a request takes
//! one.

use std::{net::IpAddr, sync::Arc};

use secrecy::SecretString;

use crate::tenancy::Tenancy;
use sparkgate_access::{Access, Action, Principal, Queue, Tenant, Visible};
use sparkgate_common::error::Error;
use sparkgate_requests::spark_lines::SparkLines;
use sparkgate_store::{Actor, AuditNote, BrowserSessionId, Scope};
use sparkgate_submission::SubmissionId;

/// A caller, with the access file that was valid when its request began. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Session {
    principal: Arc<Principal>,
    tenancy: Arc<Tenancy>,
    /// The client's address.
    address: Option<IpAddr>,
    request_id: Arc<str>,
    /// The session of the browser that sent the request, if its cookie authenticated it.
    browser_session: Option<BrowserSessionId>,
    /// What becomes of the request. `None` if callers are not authenticated: there is no audit.
    note: Option<AuditNote>,
    /// The token that Kubernetes has accepted. What lasts longer than a request is ended when Kubernetes doesn't accept it any more.
    reviewed: Option<Arc<SecretString>>,
}

impl Session {
    pub fn new(principal: Arc<Principal>, tenancy: Arc<Tenancy>, address: Option<IpAddr>, request_id: &str) -> Self {
        let note = tenancy.access().authentication().map(|_| AuditNote::default());
        Self { principal, tenancy, address, request_id: request_id.into(), browser_session: None, note, reviewed: None }
    }

    /// Returns the same caller, whom the session of a browser authenticated.
    #[must_use]
    pub fn with_browser_session(mut self, session: Option<BrowserSessionId>) -> Self {
        self.browser_session = session;
        self
    }

    /// Returns the same caller, whom Kubernetes knows by a token.
    #[must_use]
    pub fn with_review(mut self, token: Option<Arc<SecretString>>) -> Self {
        self.reviewed = token;
        self
    }

    pub fn reviewed(&self) -> Option<&SecretString> {
        self.reviewed.as_deref()
    }

    /// Returns the session of the browser that sent the request, if there is one.
    pub fn browser_session(&self) -> Option<&BrowserSessionId> {
        self.browser_session.as_ref()
    }

    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    pub fn access(&self) -> &Access {
        self.tenancy.access()
    }

    /// Returns the Spark releases that are served.
    pub fn spark_lines(&self) -> &SparkLines {
        self.tenancy.spark_lines()
    }

    pub fn tenancy(&self) -> &Tenancy {
        &self.tenancy
    }

    /// Returns the submissions that the caller may read.
    pub fn readable(&self) -> Scope {
        self.scope(Action::Read, None)
    }

    /// Returns the submissions that the caller may kill.
    pub fn killable(&self) -> Scope {
        self.scope(Action::KillAny, Some(Action::KillOwn))
    }

    /// Returns the submissions that the caller may hide with Spark's `clear`.
    pub fn clearable(&self) -> Scope {
        self.scope(Action::ClearAny, Some(Action::ClearOwn))
    }

    /// Returns the tenants whose audit the caller may read.
    pub fn audited(&self) -> Scope {
        self.scope(Action::ReadAudit, None)
    }

    /// Returns the tenants whose API keys the caller may manage.
    pub fn key_owners(&self) -> Scope {
        self.scope(Action::ManageKeys, None)
    }

    /// Returns the tenants whose webhooks the caller may manage, and where it may manage its own.
    pub fn webhook_owners(&self) -> Scope {
        self.scope(Action::ManageWebhooks, Some(Action::ManageOwnWebhooks))
    }

    /// Returns the submissions of all tenants in which the caller may do `any`, and its own ones where it may do `own`.
    fn scope(&self, any: Action, own: Option<Action>) -> Scope {
        let tenants = |action| match self.access().tenants_for(&self.principal, action) {
            Visible::All => None,
            Visible::Tenants(names) => Some(names.into_iter().collect()),
        };
        match (tenants(any), own.map(tenants)) {
            (None, _) => Scope::installation(),
            (Some(any), None) => Scope::of(any, Vec::new(), self.principal.subject()),
            (Some(any), Some(own)) => Scope::of(any, own.unwrap_or_default(), self.principal.subject()),
        }
    }

    /// Returns the tenants whose caps concern the caller: those that it may read. Callers that read every tenant have no caps.
    pub fn capped(&self) -> Vec<&Tenant> {
        match self.access().visible(&self.principal) {
            Visible::All => Vec::new(),
            Visible::Tenants(names) => names.iter().filter_map(|name| self.access().tenant(name)).collect(),
        }
    }

    /// Returns the names of the tenants whose submissions the caller may read.
    pub fn tenants(&self) -> Vec<&str> {
        let names = self.access().tenants().map(|tenant| tenant.name.as_str());
        match self.access().visible(&self.principal) {
            Visible::All => names.collect(),
            Visible::Tenants(visible) => names.filter(|name| visible.iter().any(|one| one == name)).collect(),
        }
    }

    /// Returns the queues that tenants of the caller may use, by name.
    pub fn queues(&self) -> Vec<&Queue> {
        let tenants = self.tenants();
        let is_usable = |queue: &&Queue| tenants.iter().any(|tenant| queue.admits(tenant));
        self.access().queues().iter().filter(is_usable).collect()
    }

    /// Checks that the caller may do this in some tenant.
    ///
    /// # Errors
    /// [`Error::Denied`].
    pub fn require(&self, action: Action) -> Result<(), Error> {
        let is_nowhere = match self.access().tenants_for(&self.principal, action) {
            Visible::All => false,
            Visible::Tenants(tenants) => tenants.is_empty(),
        };
        if is_nowhere {
            let (subject, role) = (self.principal.subject(), action.least_role());
            return Err(Error::Denied(format!("{subject} needs the role {role} in a tenant for this request")));
        }
        Ok(())
    }

    /// Returns the caller for the audit; `None` if callers are not authenticated.
    pub fn actor(&self) -> Option<Actor> {
        Some(Actor {
            note: self.note.clone()?,
            principal: self.principal.subject().to_owned(),
            address: self.address.map(|address| address.to_string()),
            request_id: self.request_id.to_string(),
        })
    }

    /// Notes for the audit the tenant that the request is about.
    pub fn aims_at(&self, tenant: &str) {
        self.note.iter().for_each(|note| note.aim_at(tenant));
    }

    /// Checks that the caller sees a submission and may change it, and notes a denial for the audit. `allowed` is `None` if the caller
    /// sees none.
    ///
    /// # Errors
    /// [`Error::Denied`] if the caller sees it and may not change it.
    pub fn check_permitted(&self, id: &SubmissionId, allowed: Option<bool>, verb: &str) -> Result<(), Error> {
        match allowed {
            None => self.denied(Some(id), || "it doesn't exist, or belongs to another tenant".to_owned()),
            Some(true) => {}
            Some(false) => {
                self.denied(Some(id), || "the role doesn't permit it".to_owned());
                let subject = self.principal.subject();
                return Err(Error::Denied(format!(
                    "{subject} may not {verb} {id}: the principal that submitted it may, and operators of its tenant"
                )));
            }
        }
        Ok(())
    }

    /// Notes for the audit that a change was denied.
    pub fn denied(&self, submission: Option<&SubmissionId>, reason: impl FnOnce() -> String) {
        if let Some(note) = &self.note {
            note.deny(submission, reason());
        }
    }

    /// Notes for the audit that the request changes nothing: it only asks, or repeats a request that has its entry.
    pub fn changes_nothing(&self) {
        self.note.iter().for_each(AuditNote::settle);
    }
}
