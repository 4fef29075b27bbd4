//! The audit, for those who may read it, and the entries of requests that no statement has written: denials, and changes that touch
//! no row. Each other change writes its own entry.

mod fold;

use std::sync::Arc;

use tokio::time::sleep;

use crate::session::Session;
use fold::{Folded, Folds, PERIOD};
use sparkgate_access::Action;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::{Actor, AuditEntry, AuditFilter, AuditSubject, Denial, Store};

/// Reads and writes the audit.
#[derive(Debug)]
pub struct Audit {
    store: Store,
    folds: Folds,
}

/// What a request asked for.
#[derive(Debug, Clone, Copy)]
pub struct RequestedChange<'a> {
    /// The name of the action in the audit.
    pub action: &'static str,
    /// What its path names.
    pub subject: Option<AuditSubject<'a>>,
    /// The same in the detail of an entry, such as `key 1f`; empty for a submission.
    pub named: &'a str,
}

/// What the answer to a request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// The reason must not quote values of the request, which may be secrets.
    Denied(String),
    /// It isn't known, or the request may succeed later.
    None,
}

impl Audit {
    pub fn new(store: Store) -> Self {
        Self { store, folds: Folds::default() }
    }

    /// Returns up to `limit` entries after the position `after` of the tenants whose audit the caller may read.
    ///
    /// # Errors
    /// [`Error::Denied`] if there is no such tenant.
    pub async fn entries(
        &self,
        caller: &Session,
        filter: &AuditFilter,
        after: i64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        caller.require(Action::ReadAudit)?;
        Ok(self.store.scoped(&caller.audited()).audit(filter, after, limit).await?)
    }

    /// Writes what became of a request, unless a statement has written it. A denial holds whether its entry can be written or not.
    pub async fn write(self: &Arc<Self>, caller: &Session, asked: RequestedChange<'_>, verdict: Verdict) {
        let Some(actor) = caller.actor() else { return };
        let (aim, mut denials) = actor.note.take();
        let is_settled = actor.note.is_settled();
        let mut allowed = None;
        match verdict {
            _ if is_settled && denials.is_empty() => return,
            Verdict::Denied(reason) if denials.is_empty() => denials.push(Denial { submission: None, reason }),
            // Such as Spark's protocol, which answers the kill of an unknown submission with 200.
            Verdict::Allowed if denials.is_empty() => allowed = Some("nothing to change"),
            Verdict::None if denials.is_empty() => return,
            Verdict::Allowed | Verdict::Denied(_) | Verdict::None => {}
        }
        // The caller's own tenant, if the request names nothing of another one.
        let own = || <[&str; 1]>::try_from(caller.tenants()).ok().map(|[only]| only.to_owned());
        let fallback = aim.or_else(own);
        if let Some(nothing) = allowed {
            let (tenant, submission) = self.about(asked.subject, fallback).await;
            let detail = if asked.named.is_empty() { nothing } else { asked.named };
            return self.append(&actor, asked.action, (tenant, submission), true, detail).await;
        }
        for Denial { submission, reason } in denials {
            let subject = submission.as_ref().map(|id| AuditSubject::Submission(id.as_str())).or(asked.subject);
            let (tenant, id) = self.about(subject, fallback.clone()).await;
            let id = submission.map(|id| id.to_string()).or(id);
            match self.folds.count(&actor.principal, tenant.as_deref()) {
                Folded::Written => {
                    let separator = if asked.named.is_empty() { "" } else { ": " };
                    let detail = format!("{}{separator}{reason}", asked.named);
                    self.append(&actor, asked.action, (tenant, id), false, &detail).await;
                }
                Folded::First => self.clone().sum_up_later(actor.clone(), tenant),
                Folded::Counted => {}
            }
        }
    }

    /// Returns the tenant and the submission that an entry is about.
    async fn about(
        &self,
        subject: Option<AuditSubject<'_>>,
        fallback: Option<String>,
    ) -> (Option<String>, Option<String>) {
        let Some(subject) = subject else { return (fallback, None) };
        match self.store.audited(subject).await {
            Ok(Some((tenant, submission))) => (tenant.or(fallback), submission),
            Ok(None) | Err(_) => (fallback, None),
        }
    }

    /// Writes at the end of the period how many denials had no entry.
    fn sum_up_later(self: Arc<Self>, actor: Actor, tenant: Option<String>) {
        tokio::spawn(async move {
            sleep(PERIOD).await;
            let count = self.folds.end(&actor.principal, tenant.as_deref());
            let detail = format!("{count} further denials in {} s, from this address and others", PERIOD.as_secs());
            self.append(&actor, "denials", (tenant, None), false, &detail).await;
        });
    }

    async fn append(
        &self,
        actor: &Actor,
        action: &str,
        (tenant, submission): (Option<String>, Option<String>),
        allowed: bool,
        detail: &str,
    ) {
        let submission = submission.and_then(|id| id.parse().ok());
        let about = (tenant.as_deref(), submission.as_ref());
        if let Err(error) = self.store.write_audit(actor, action, about, allowed, detail).await {
            tracing::warn!("an entry is missing in the audit: {}", error_chain(&error));
        }
    }
}
