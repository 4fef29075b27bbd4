//! The decisions: what a principal may do, and where.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::{
    authentication::Authentication,
    pattern::Patterns,
    principal::{Principal, shortened},
    queue::{Queue, Queues},
    rate::Rates,
    role::{Action, Role},
    tenant::{Caps, Member, Namespaces, Tenant, TenantLimits, strongest},
};

/// What a gateway knows of its callers: how they are authenticated, the tenants, and who may do what. It is immutable; a changed
/// access file makes another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    authentication: Option<Authentication>,
    tenants: BTreeMap<String, Tenant>,
    /// The roles in every tenant.
    members: Vec<Member>,
    rates: Option<Rates>,
    /// The tenant of each namespace.
    namespaces: BTreeMap<String, String>,
    queues: Queues,
}

impl Access {
    /// Returns the access of a gateway without an access file: one tenant `default` with every namespace, in which every caller
    /// is [`Principal::anonymous`] and admin.
    pub fn open() -> Self {
        let tenant = Tenant {
            name: "default".to_owned(),
            namespaces: Namespaces::All,
            service_accounts: Vec::new(),
            spark_versions: Vec::new(),
            default_spark_version: None,
            named_defaults: Patterns::All,
            files: Patterns::All,
            properties: BTreeMap::new(),
            defaults: BTreeMap::new(),
            caps: Caps::default(),
            limits: TenantLimits::default(),
            prices: None,
            default_queue: None,
            has_shared_sessions: false,
            policy: None,
            members: Vec::new(),
        };
        let anonymous = BTreeSet::from([Principal::anonymous().subject().to_owned()]);
        let member = Member { role: Role::Admin, subjects: anonymous, groups: BTreeSet::new(), owns_pods: true };
        Self::new(None, vec![tenant], vec![member], None)
    }

    /// Combines the parts. The file has been checked: no two tenants have the same name or namespace.
    pub(crate) fn new(
        authentication: Option<Authentication>,
        tenants: Vec<Tenant>,
        members: Vec<Member>,
        rates: Option<Rates>,
    ) -> Self {
        let mut namespaces = BTreeMap::new();
        for tenant in &tenants {
            if let Namespaces::Listed(names) = &tenant.namespaces {
                namespaces.extend(names.iter().map(|name| (name.clone(), tenant.name.clone())));
            }
        }
        let tenants = tenants.into_iter().map(|tenant| (tenant.name.clone(), tenant)).collect();
        Self { authentication, tenants, members, rates, namespaces, queues: Queues::default() }
    }

    pub(crate) fn with_queues(self, queues: Queues) -> Self {
        Self { queues, ..self }
    }

    /// Returns the queues; none without an access file.
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Returns the namespaces of the tenants that may use one of these queues; `all` are those of a tenant that has all.
    pub fn namespaces_of_queues(&self, all: &[String], is_one: impl Fn(&Queue) -> bool) -> BTreeSet<String> {
        let tenants = self.tenants().filter(|tenant| self.queues.for_tenant(&tenant.name).any(&is_one));
        let of_each = tenants.flat_map(|tenant| match &tenant.namespaces {
            Namespaces::All => all,
            Namespaces::Listed(names) => names,
        });
        of_each.cloned().collect()
    }

    /// Returns how callers are authenticated. `None` if there is no access file: every caller is [`Principal::anonymous`].
    pub fn authentication(&self) -> Option<&Authentication> {
        self.authentication.as_ref()
    }

    /// Returns the rates of the front door. `None` if there is no access file: nothing is limited.
    pub fn rates(&self) -> Option<&Rates> {
        self.rates.as_ref()
    }

    /// Returns all tenants, by name.
    pub fn tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.tenants.values()
    }

    /// Returns the tenant with this name.
    pub fn tenant(&self, name: &str) -> Option<&Tenant> {
        self.tenants.get(name)
    }

    /// Returns the tenant that a namespace belongs to.
    pub fn tenant_of_namespace(&self, namespace: &str) -> Option<&Tenant> {
        match self.namespaces.get(namespace) {
            Some(name) => self.tenants.get(name),
            None => self.tenants.values().find(|tenant| tenant.namespaces == Namespaces::All),
        }
    }

    /// Returns the strongest role of a principal in a tenant: of the members of the tenant, those of all tenants, and what the
    /// credential itself grants.
    ///
    /// In a tenant that the file doesn't have (any more), only the roles in every tenant count.
    pub fn role_in(&self, principal: &Principal, tenant: &str) -> Option<Role> {
        let of_tenant = self.tenants.get(tenant).and_then(|tenant| {
            let granted = principal.grants().iter().filter(|grant| grant.tenant() == Some(&tenant.name));
            granted.map(|grant| grant.role()).max().max(strongest(&tenant.members, principal))
        });
        of_tenant.max(self.role_everywhere(principal))
    }

    /// Returns the strongest role that a principal has in every tenant.
    pub fn role_everywhere(&self, principal: &Principal) -> Option<Role> {
        let granted = principal.grants().iter().filter(|grant| grant.tenant().is_none());
        granted.map(|grant| grant.role()).max().max(strongest(&self.members, principal))
    }

    /// Returns whether a principal may do this in a tenant. [`Action::KillOwn`] and [`Action::ClearOwn`] concern submissions
    /// whose principal it is, which the caller of this function checks; [`Access::may_kill`] does both.
    pub fn may(&self, principal: &Principal, action: Action, tenant: &str) -> bool {
        self.role_in(principal, tenant) >= Some(action.least_role())
    }

    /// Returns whether a principal may kill a submission of this tenant that was submitted by the subject `submitter`.
    pub fn may_kill(&self, principal: &Principal, tenant: &str, submitter: &str) -> bool {
        let own = principal.subject() == submitter;
        self.may(principal, if own { Action::KillOwn } else { Action::KillAny }, tenant)
    }

    /// Returns whether a principal sees the shared sessions of a tenant as sessions that it may use: it may read the tenant, whose operator
    /// permits them. Each use needs [`Action::Submit`], which the caller of this function checks.
    pub fn shares_sessions(&self, principal: &Principal, tenant: &str) -> bool {
        let is_permitted = self.tenants.get(tenant).is_some_and(|tenant| tenant.has_shared_sessions);
        is_permitted && self.may(principal, Action::Read, tenant)
    }

    /// Returns whether a principal may own the driver pods of its submissions to a tenant, as Kubeflow's operator does: the gateway
    /// then neither holds nor deletes them by itself. It is a right beside the roles, which a member of the file has explicitly.
    pub fn may_own_pods(&self, principal: &Principal, tenant: &str) -> bool {
        let of_tenant = self.tenants.get(tenant).map(|tenant| &tenant.members);
        let mut members = of_tenant.into_iter().flatten().chain(&self.members);
        members.any(|member| member.owns_pods && member.includes(principal))
    }

    /// Returns whether a principal is admin: it may read the whole audit and manage all API keys.
    pub fn is_admin(&self, principal: &Principal) -> bool {
        self.role_everywhere(principal) == Some(Role::Admin)
    }

    /// Returns whether a principal may create or revoke an API key that has this role in a tenant; `None` is every tenant.
    pub fn may_manage_key(&self, principal: &Principal, role: Role, tenant: Option<&str>) -> bool {
        self.is_admin(principal)
            || tenant.is_some_and(|tenant| {
                self.may(principal, Action::ManageKeys, tenant) && self.role_in(principal, tenant) >= Some(role)
            })
    }

    /// Returns the tenants that a principal can see.
    pub fn visible(&self, principal: &Principal) -> Visible {
        self.tenants_for(principal, Action::Read)
    }

    /// Returns the tenants in which a principal may do this: what `killall` kills, and what a list of the audit shows.
    pub fn tenants_for(&self, principal: &Principal, action: Action) -> Visible {
        if self.role_everywhere(principal) >= Some(action.least_role()) {
            return Visible::All;
        }
        let names = self.tenants.keys().filter(|tenant| self.may(principal, action, tenant));
        Visible::Tenants(names.cloned().collect())
    }

    /// Returns the tenant of a new submission: that of the namespace, or, if the request names none, the only one in which the
    /// principal may submit. Its namespace is then [`Tenant::default_namespace`].
    ///
    /// # Errors
    /// The principal may submit nowhere, or not to this namespace, or to several tenants without a namespace that selects one.
    /// An error never says whether a namespace exists in another tenant.
    pub fn tenant_for(&self, principal: &Principal, namespace: Option<&str>) -> Result<&Tenant, TenantError> {
        let permitted = || self.tenants.values().filter(|tenant| self.may(principal, Action::Submit, &tenant.name));
        let permitted_namespaces = || {
            let listed = permitted().filter_map(|tenant| match &tenant.namespaces {
                Namespaces::All => None,
                Namespaces::Listed(names) => Some(names),
            });
            listed.flatten().cloned().collect::<Vec<_>>()
        };
        if permitted().next().is_none() {
            return Err(TenantError::None { subject: principal.subject().to_owned() });
        }
        match namespace {
            Some(namespace) => {
                permitted().find(|tenant| tenant.namespaces.contains(namespace)).ok_or_else(|| TenantError::Namespace {
                    namespace: shortened(namespace).into_owned(),
                    permitted: permitted_namespaces(),
                })
            }
            None => {
                let mut tenants = permitted();
                match (tenants.next(), tenants.next()) {
                    (Some(only), None) => Ok(only),
                    _ => Err(TenantError::Several { permitted: permitted_namespaces() }),
                }
            }
        }
    }
}

/// The tenants whose rows a statement may return or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    /// All, and also rows of tenants that the access file doesn't have any more.
    All,
    /// These, possibly none.
    Tenants(BTreeSet<String>),
}

impl Visible {
    /// Returns whether the tenant is one of them.
    pub fn contains(&self, tenant: &str) -> bool {
        match self {
            Self::All => true,
            Self::Tenants(names) => names.contains(tenant),
        }
    }
}

/// Why a request belongs to no tenant in which its principal may submit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TenantError {
    #[error("{subject} may not submit to any tenant: ask an operator of the gateway for the role submitter")]
    None { subject: String },
    #[error("you may not submit to namespace `{namespace}`: use {}", listed(.permitted))]
    Namespace { namespace: String, permitted: Vec<String> },
    #[error("you may submit to several tenants: set spark.kubernetes.namespace to {}", listed(.permitted))]
    Several { permitted: Vec<String> },
}

/// Writes names as an enumeration.
fn listed(names: &[String]) -> String {
    match names {
        [] => "another one".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
