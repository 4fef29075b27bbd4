//! Principals: authenticated callers.

use std::{borrow::Cow, collections::BTreeSet, fmt};

use chrono::{DateTime, Utc};
use thiserror::Error;

use crate::role::Role;

/// The greatest length of a subject or a group in bytes, without its prefix. Distinguished names of directories stay below it.
pub const LONGEST_NAME: usize = 512;

/// What authenticated a caller. Its prefix is the beginning of all subjects and groups that it vouches for, so that no provider
/// can name those of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// A token of the OIDC issuer with this name.
    Oidc(String),
    /// A token that Kubernetes' `TokenReview` accepted.
    Kubernetes,
    /// An API key of this gateway.
    ApiKey,
    /// A client certificate.
    Certificate,
    /// A header that a trusted reverse proxy sent.
    Proxy,
    /// A token for Spark's `JWSFilter`.
    SparkJws,
    /// The port for clients of Spark's protocol that can't authenticate.
    SparkListener,
    /// No authentication: the gateway has no access file.
    Anonymous,
}

impl Provider {
    /// Contains the providers whose prefix is fixed. The name of an OIDC issuer must be another one.
    pub(crate) const FIXED: [Self; 7] = [
        Self::Kubernetes,
        Self::ApiKey,
        Self::Certificate,
        Self::Proxy,
        Self::SparkJws,
        Self::SparkListener,
        Self::Anonymous,
    ];

    /// Returns what stands before the colon in subjects and groups.
    pub fn prefix(&self) -> &str {
        match self {
            Self::Oidc(name) => name,
            Self::Kubernetes => "kubernetes",
            Self::ApiKey => "key",
            Self::Certificate => "certificate",
            Self::Proxy => "proxy",
            Self::SparkJws => "spark",
            Self::SparkListener => "listener",
            Self::Anonymous => "anonymous",
        }
    }

    /// Checks the name of an OIDC issuer: lower-case letters, digits and hyphens, and no fixed prefix.
    pub(crate) fn check_oidc_name(name: &str) -> Result<(), InvalidName> {
        if Self::FIXED.iter().any(|provider| provider.prefix() == name) {
            return Err(InvalidName::Reserved(name.to_owned()));
        }
        let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 63 || !name.chars().all(fine) {
            return Err(InvalidName::Prefix);
        }
        Ok(())
    }
}

/// An authenticated caller: its subject, its groups, and until when they are valid.
///
/// The subject is `<provider>:<name>`. It can't be created without its prefix, and neither can a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    subject: String,
    groups: BTreeSet<String>,
    provider: Provider,
    expires: Option<DateTime<Utc>>,
    grants: Vec<Grant>,
    display: String,
}

impl Principal {
    /// Creates the principal with this name at its provider, without groups.
    ///
    /// # Errors
    /// The name is empty, longer than [`LONGEST_NAME`], or has characters that can't be displayed, or that of the OIDC issuer is
    /// the prefix of another provider.
    pub fn new(provider: Provider, name: &str) -> Result<Self, InvalidName> {
        if let Provider::Oidc(issuer) = &provider {
            Provider::check_oidc_name(issuer)?;
        }
        check_name(name)?;
        let subject = format!("{}:{name}", provider.prefix());
        let display = name.to_owned();
        Ok(Self { subject, groups: BTreeSet::new(), provider, expires: None, grants: Vec::new(), display })
    }

    /// Returns the one caller of a gateway without an access file, `anonymous:anonymous`.
    pub fn anonymous() -> Self {
        Self {
            subject: "anonymous:anonymous".to_owned(),
            groups: BTreeSet::new(),
            provider: Provider::Anonymous,
            expires: None,
            grants: Vec::new(),
            display: "anonymous".to_owned(),
        }
    }

    /// Adds groups by their names at the provider. Names that no group can have are left out: they grant nothing.
    #[must_use]
    pub fn with_groups<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let prefix = self.provider.prefix();
        let valid = names.into_iter().filter(|name| check_name(name).is_ok());
        self.groups.extend(valid.map(|name| format!("{prefix}:{name}")));
        self
    }

    /// Sets the time at which the credential ends.
    #[must_use]
    pub fn with_expiry(mut self, expires: Option<DateTime<Utc>>) -> Self {
        self.expires = expires;
        self
    }

    /// Sets what the credential itself grants: the roles of an API key.
    #[must_use]
    pub fn with_grants(mut self, grants: Vec<Grant>) -> Self {
        self.grants = grants;
        self
    }

    /// Sets the name for people, if it can be displayed. It decides nothing.
    #[must_use]
    pub fn with_display(mut self, name: &str) -> Self {
        if check_name(name).is_ok() {
            name.clone_into(&mut self.display);
        }
        self
    }

    /// Returns the subject, `<provider>:<name>`.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the groups, each with the provider's prefix.
    pub fn groups(&self) -> &BTreeSet<String> {
        &self.groups
    }

    /// Returns what authenticated the caller.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Returns the time at which the credential ends, if it does.
    pub fn expires(&self) -> Option<DateTime<Utc>> {
        self.expires
    }

    /// Returns whether the credential has ended: a stream that it opened ends too.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns what the credential itself grants.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Returns the name under which submissions are recorded that name no owner: that of an API key, else the one in the subject, which
    /// is stable where a display name isn't.
    pub fn owner(&self) -> &str {
        match self.provider {
            Provider::ApiKey => &self.display,
            _ => self.subject.split_once(':').map_or(&self.subject, |(_, name)| name),
        }
    }

    /// Returns the name for people: the display name that was set, else the name without its prefix.
    pub fn display(&self) -> &str {
        &self.display
    }
}

/// Writes the subject.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject)
    }
}

/// A role that a credential carries: in one tenant or in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    role: Role,
    tenant: Option<String>,
}

impl Grant {
    /// Creates a grant for every tenant.
    pub fn everywhere(role: Role) -> Self {
        Self { role, tenant: None }
    }

    /// Creates a grant for one tenant.
    ///
    /// # Errors
    /// The role is admin, which exists only for all tenants.
    pub fn in_tenant(role: Role, tenant: impl Into<String>) -> Result<Self, InvalidGrant> {
        if role == Role::Admin { Err(InvalidGrant) } else { Ok(Self { role, tenant: Some(tenant.into()) }) }
    }

    /// Returns the role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the tenant; `None` is every tenant.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }
}

/// The role admin was granted for one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the role admin can't be granted for one tenant: grant operator, or admin for all tenants")]
pub struct InvalidGrant;

/// Why a text is no name of a subject, a group or an issuer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidName {
    #[error("a name is empty")]
    Empty,
    #[error("a name has {0} bytes, more than {LONGEST_NAME}")]
    TooLong(usize),
    #[error("a name has characters that can't be displayed, or spaces around it")]
    Characters,
    #[error("an issuer's name has up to 63 lower-case letters, digits and hyphens")]
    Prefix,
    #[error("`{0}` is the prefix of another provider: choose another name for the issuer")]
    Reserved(String),
}

/// Checks a name without its prefix.
pub(crate) fn check_name(name: &str) -> Result<(), InvalidName> {
    if name.is_empty() {
        return Err(InvalidName::Empty);
    }
    if name.len() > LONGEST_NAME {
        return Err(InvalidName::TooLong(name.len()));
    }
    if name.trim() != name || name.chars().any(is_invisible) {
        return Err(InvalidName::Characters);
    }
    Ok(())
}

/// Returns whether a character would make a name look like another one, or break a line of a log: control characters, marks of
/// direction, characters of no width, separators of lines.
fn is_invisible(c: char) -> bool {
    let of_no_width = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    c.is_control() || of_no_width || matches!(c, '\u{ad}' | '\u{feff}')
}

/// Splits a subject or a group into prefix and name.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    text.split_once(':').filter(|(prefix, _)| !prefix.is_empty())
}

/// Shortens a text for a message.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(80) {
        None => Cow::Borrowed(text),
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oidc(name: &str) -> Provider {
        Provider::Oidc(name.to_owned())
    }

    #[test]
    fn a_subject_and_its_groups_carry_the_prefix_of_their_provider() {
        let alice = Principal::new(oidc("corp"), "alice").unwrap().with_groups(["data-eng", "key:admin", ""]);
        assert_eq!(alice.subject(), "corp:alice");
        assert_eq!(alice.groups().iter().collect::<Vec<_>>(), ["corp:data-eng", "corp:key:admin"]);
        assert_eq!(alice.display(), "alice");
        let airflow = Principal::new(Provider::Kubernetes, "system:serviceaccount:ci:airflow").unwrap();
        assert_eq!(airflow.to_string(), "kubernetes:system:serviceaccount:ci:airflow");
        assert_eq!(Principal::anonymous(), Principal::new(Provider::Anonymous, "anonymous").unwrap());
    }

    #[test]
    fn an_issuer_can_not_have_the_prefix_of_another_provider() {
        for provider in Provider::FIXED {
            let prefix = provider.prefix();
            assert_eq!(Principal::new(oidc(prefix), "alice"), Err(InvalidName::Reserved(prefix.to_owned())));
        }
        for name in ["", "a:b", "Corp", "a b", &"x".repeat(64)] {
            assert_eq!(Principal::new(oidc(name), "alice"), Err(InvalidName::Prefix), "{name}");
        }
    }

    #[test]
    fn a_name_that_can_not_be_displayed_is_refused() {
        let name = |name: &str| Principal::new(Provider::Kubernetes, name).map(|_| ());
        assert_eq!(name(""), Err(InvalidName::Empty));
        assert_eq!(name(&"é".repeat(LONGEST_NAME)), Err(InvalidName::TooLong(2 * LONGEST_NAME)));
        assert_eq!(name(&"x".repeat(LONGEST_NAME)), Ok(()));
        for text in ["a\nb", "a\0", "\u{202e}ecila", "ali\u{200b}ce", " alice", "alice ", "a\u{2028}b", "\u{feff}a"] {
            assert_eq!(name(text), Err(InvalidName::Characters), "{text:?}");
        }
        assert_eq!(name("Ünal, José"), Ok(()));
    }

    #[test]
    fn a_display_name_that_can_not_be_displayed_is_left_out() {
        let principal = Principal::new(Provider::ApiKey, "nightly").unwrap();
        assert_eq!(principal.clone().with_display("a\nb").display(), "nightly");
        assert_eq!(principal.with_display("Nightly runs").display(), "Nightly runs");
    }

    #[test]
    fn a_credential_ends_at_its_expiry() {
        let end = DateTime::from_timestamp(1000, 0).unwrap();
        let principal = Principal::anonymous().with_expiry(Some(end));
        assert!(principal.is_expired(end));
        assert!(!principal.is_expired(end - chrono::Duration::seconds(1)));
        assert!(!Principal::anonymous().is_expired(end));
    }

    #[test]
    fn admin_is_granted_for_all_tenants_only() {
        assert_eq!(Grant::in_tenant(Role::Admin, "analytics"), Err(InvalidGrant));
        assert_eq!(Grant::everywhere(Role::Admin).tenant(), None);
    }
}
