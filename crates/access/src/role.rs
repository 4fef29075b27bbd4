//! Roles and what each of them may do.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// A role in a tenant. Each role may do what the roles before it may.
///
/// | role | may |
/// |---|---|
/// | viewer | read everything of the tenant: submissions, events, logs, executors, attempts, manifests |
/// | submitter | submit, dry-run; kill and clear its own submissions, and have webhooks for them |
/// | operator | kill and clear all submissions of the tenant, read its audit, manage its webhooks, and its API keys up to its own role |
/// | admin | be operator of every tenant; read the whole audit, manage all API keys |
///
/// Admin exists only for all tenants at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Viewer,
    Submitter,
    Operator,
    Admin,
}

impl Role {
    /// Contains all roles, the weakest first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Submitter, Self::Operator, Self::Admin];

    /// Returns the name in the access file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(UnknownRole)
    }
}

/// A text is the name of no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a role is viewer, submitter, operator or admin")]
pub struct UnknownRole;

/// What a caller wants to do in a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// To read submissions, events, logs, executors, attempts and manifests.
    Read,
    /// To submit.
    Submit,
    /// To build the objects of a request without a submission.
    DryRun,
    /// To kill a submission that the caller submitted.
    KillOwn,
    /// To clear the caller's own ended submissions, as Spark's `clear` does.
    ClearOwn,
    /// To kill any submission of the tenant.
    KillAny,
    /// To kill all submissions of the tenant at once, as Spark's `killall` does.
    KillAll,
    /// To clear the ended submissions of the tenant.
    ClearAny,
    /// To read the tenant's audit.
    ReadAudit,
    /// To list, create and revoke API keys of the tenant.
    ManageKeys,
    /// To create webhooks for the caller's own submissions, and to manage those.
    ManageOwnWebhooks,
    /// To manage all webhooks of the tenant, also those for all of its submissions.
    ManageWebhooks,
}

impl Action {
    /// Contains all actions.
    pub const ALL: [Self; 12] = [
        Self::Read,
        Self::Submit,
        Self::DryRun,
        Self::KillOwn,
        Self::ClearOwn,
        Self::KillAny,
        Self::KillAll,
        Self::ClearAny,
        Self::ReadAudit,
        Self::ManageKeys,
        Self::ManageOwnWebhooks,
        Self::ManageWebhooks,
    ];

    /// Returns the weakest role that may do this in its tenant.
    pub fn least_role(self) -> Role {
        match self {
            Self::Read => Role::Viewer,
            Self::Submit | Self::DryRun | Self::KillOwn | Self::ClearOwn | Self::ManageOwnWebhooks => Role::Submitter,
            Self::KillAny
            | Self::KillAll
            | Self::ClearAny
            | Self::ReadAudit
            | Self::ManageKeys
            | Self::ManageWebhooks => Role::Operator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_and_have_names() {
        assert!(Role::ALL.is_sorted());
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        for text in ["", "Viewer", "owner"] {
            assert_eq!(text.parse::<Role>(), Err(UnknownRole), "{text}");
        }
    }
}
