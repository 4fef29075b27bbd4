//! Who requests a change, and what became of the request, for the audit.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use sparkgate_submission::SubmissionId;

/// Who requested a change, and where the request came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The subject of the principal, such as `corp:alice`.
    pub principal: String,
    /// The address of the client.
    pub address: Option<String>,
    pub request_id: String,
    /// What became of the request.
    pub note: AuditNote,
}

/// What became of a request, as far as the audit needs it. Shared by all that work on the request. Two notes are equal: a note is no
/// part of a caller's identity.
#[derive(Debug, Clone, Default)]
pub struct AuditNote(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// Whether nothing more is to be written: a statement has written the entry, or the request wants no change.
    is_settled: AtomicBool,
    about: Mutex<(Option<String>, Vec<Denial>)>,
}

/// A change that a request asked for and didn't get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub submission: Option<SubmissionId>,
    pub reason: String,
}

impl PartialEq for AuditNote {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for AuditNote {}

impl AuditNote {
    /// Notes that the request needs no further entry.
    pub fn settle(&self) {
        self.0.is_settled.store(true, Ordering::Relaxed);
    }

    pub fn is_settled(&self) -> bool {
        self.0.is_settled.load(Ordering::Relaxed)
    }

    /// Notes the tenant that the request is about.
    pub fn aim_at(&self, tenant: &str) {
        self.about().0 = Some(tenant.to_owned());
    }

    /// Notes a denial; a request of one change has only the first.
    pub fn deny(&self, submission: Option<&SubmissionId>, reason: String) {
        let denials = &mut self.about().1;
        if submission.is_some() || denials.is_empty() {
            denials.push(Denial { submission: submission.cloned(), reason });
        }
    }

    /// Takes the tenant and the denials out.
    pub fn take(&self) -> (Option<String>, Vec<Denial>) {
        std::mem::take(&mut *self.about())
    }

    fn about(&self) -> MutexGuard<'_, (Option<String>, Vec<Denial>)> {
        self.0.about.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
