//! The access file with all that follows from it: what the gateway's own settings become for each tenant. Compiled once when the
//! file is read, so that a request only looks it up.

use std::{collections::BTreeMap, fmt, net::IpAddr, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::access_generation::AccessGeneration;
use sparkgate_access::{self, Access, Principal, Tenant, jwt::SharedSecret};
use sparkgate_common::rate_limits::{Exceeded, RateLimits};
use sparkgate_policy::{Fault, Policy, PolicyDocument};
use sparkgate_requests::{
    options::{Caps, SubmissionOptions},
    settings::{Settings, SparkSettings},
    spark_lines::SparkLines,
    submitter::{Completed, SPARK_DEFAULTS},
};
use sparkgate_spark::Refusal;

pub const NAMESPACE: &str = "spark.kubernetes.namespace";

/// The origin of properties that a tenant forces, and of its defaults.
pub const TENANT: &str = "tenant";

/// Who may do what, and what applies to the submissions of each tenant. Immutable but for its counts; a changed access file makes
/// another one.
pub struct Tenancy {
    access: Access,
    tenants: BTreeMap<String, Arc<TenantRules>>,
    /// The secret of Spark's `JWSFilter`.
    spark_secret: Option<SharedSecret>,
    /// `None` without an access file: nothing is limited.
    limits: Option<Arc<RateLimits>>,
    file: FileRead,
    spark_lines: SparkLines,
}

/// When a replica read the access file, by its clock, and which content it read.
#[derive(Debug, Clone)]
pub struct FileRead {
    /// Releases that know no generations compare times.
    pub at: DateTime<Utc>,
    pub generation: Arc<AccessGeneration>,
}

impl FileRead {
    fn now(content: &str) -> Self {
        Self { at: Utc::now(), generation: Arc::new(AccessGeneration::new(content)) }
    }
}

/// Policies and forced options that can't be used: one text for each fault.
#[derive(Debug, thiserror::Error)]
#[error("policies or forced properties of tenants can't be used: {}", .0.join("; "))]
pub struct PolicyFaults(Vec<String>);

/// What applies to the submissions of one tenant.
#[derive(Debug)]
pub struct TenantRules {
    pub tenant: Tenant,
    /// The gateway's settings, with the named defaults and files that this tenant may use.
    pub spark: SparkSettings,
    /// The options among the forced properties, which hold whatever a request says, by property, field or header.
    forced: SubmissionOptions,
    /// The stricter of the tenant's and the gateway's caps.
    pub caps: Caps,
    /// Judges each driver. `None` without an access file.
    pub policy: Option<Policy>,
    /// A digest of the policy, to tell whether another access file has the same one for this tenant.
    pub digest: String,
    /// The access file that they are from.
    pub file: FileRead,
}

impl Tenancy {
    /// Returns the access of a gateway without a file.
    pub fn open(settings: &Settings) -> Self {
        let (access, file) = (Access::open(), FileRead::now(""));
        let rules =
            |tenant: &Tenant| (tenant.name.clone(), Arc::new(TenantRules::new(tenant, None, settings, file.clone())));
        let tenants = access.tenants().map(rules).collect();
        let spark_lines = settings.spark.lines.clone();
        Self { tenants, limits: None, access, spark_secret: None, file, spark_lines }
    }

    /// Combines the access file, which has this content, with the gateway's settings.
    ///
    /// # Errors
    /// The faults of the tenants' policies.
    pub fn new(
        access: Access,
        content: &str,
        spark_secret: Option<SharedSecret>,
        settings: &Settings,
    ) -> Result<Self, PolicyFaults> {
        let (mut tenants, mut faults, file) = (BTreeMap::new(), Vec::new(), FileRead::now(content));
        for tenant in access.tenants() {
            if let Err(refusal) = SubmissionOptions::take(&mut tenant.properties.clone()) {
                faults.push(format!("{}: properties: {refusal}", tenant.name));
            }
            match policy(tenant) {
                Ok(policy) => {
                    let rules = TenantRules::new(tenant, Some(policy), settings, file.clone());
                    tenants.insert(tenant.name.clone(), Arc::new(rules));
                }
                Err(each) => faults.extend(each.iter().map(|fault| format!("{}: {fault}", tenant.name))),
            }
        }
        let limits = access.rates().map(|rates| Arc::new(RateLimits::new(rates)));
        if !faults.is_empty() {
            return Err(PolicyFaults(faults));
        }
        Ok(Self { access, tenants, spark_secret, limits, file, spark_lines: settings.spark.lines.clone() })
    }

    /// Returns the same access with other settings of the gateway. Requests keep the counts that limit them.
    pub fn with_settings(&self, settings: &Settings) -> Self {
        let rules = |rules: &TenantRules| {
            Arc::new(TenantRules::new(&rules.tenant, rules.policy.clone(), settings, rules.file.clone()))
        };
        Self {
            access: self.access.clone(),
            tenants: self.tenants.iter().map(|(name, each)| (name.clone(), rules(each))).collect(),
            spark_secret: self.spark_secret.clone(),
            limits: self.limits.clone(),
            file: self.file.clone(),
            spark_lines: settings.spark.lines.clone(),
        }
    }

    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Counts a request of a principal against its limits.
    ///
    /// # Errors
    /// [`Exceeded`].
    pub fn count(&self, principal: &Principal, is_read: bool, bytes: u64) -> Result<(), Exceeded> {
        self.limits.as_ref().map_or(Ok(()), |limits| limits.count(principal.subject(), is_read, bytes))
    }

    /// Counts bytes that a principal sends, beyond those that its request announced.
    ///
    /// # Errors
    /// [`Exceeded`].
    pub fn count_bytes(&self, principal: &Principal, bytes: u64) -> Result<(), Exceeded> {
        self.limits.as_ref().map_or(Ok(()), |limits| limits.count_bytes(principal.subject(), bytes))
    }

    /// Returns whether an address may try another login, without counting one.
    pub fn check_logins(&self, address: IpAddr) -> Result<(), Exceeded> {
        self.limits.as_ref().map_or(Ok(()), |limits| limits.check_logins(address))
    }

    /// Counts a failed login from an address.
    ///
    /// # Errors
    /// [`Exceeded`] if there were too many.
    pub fn count_failed_login(&self, address: IpAddr) -> Result<(), Exceeded> {
        self.limits.as_ref().map_or(Ok(()), |limits| limits.count_failed_login(address))
    }

    /// Returns when this replica read the access file, and which generation of it.
    pub fn file(&self) -> &FileRead {
        &self.file
    }

    /// Returns the Spark releases that are served.
    pub fn spark_lines(&self) -> &SparkLines {
        &self.spark_lines
    }

    pub fn spark_secret(&self) -> Option<&SharedSecret> {
        self.spark_secret.as_ref()
    }

    /// Returns the rules of a tenant of the access file.
    pub fn rules(&self, tenant: &str) -> Option<&Arc<TenantRules>> {
        self.tenants.get(tenant)
    }

    /// Returns the rules of the tenant that a namespace belongs to.
    pub fn rules_of_namespace(&self, namespace: &str) -> Option<&Arc<TenantRules>> {
        self.rules(&self.access.tenant_of_namespace(namespace)?.name)
    }
}

/// Writes the names of the tenants.
impl fmt::Debug for Tenancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenancy").field("tenants", &self.tenants.keys()).finish_non_exhaustive()
    }
}

impl TenantRules {
    fn new(tenant: &Tenant, policy: Option<Policy>, settings: &Settings, file: FileRead) -> Self {
        let mut spark = settings.spark.clone();
        spark.submitter.retain(|name| tenant.named_defaults.matches(name), |file| tenant.files.matches(file));
        let caps = stricter(&settings.caps, tenant.caps);
        // Checked when the access file was read.
        let forced = SubmissionOptions::take(&mut tenant.properties.clone()).unwrap_or_default();
        Self { tenant: tenant.clone(), spark, forced, caps, policy, digest: digest(tenant), file }
    }

    /// Returns the options of a request under those that the tenant forces. Some clients retry by themselves.
    pub fn forced(&self, options: SubmissionOptions) -> SubmissionOptions {
        let SubmissionOptions { wire, retries, memory_growth, restart, .. } = options;
        let forced = self.forced.clone().or(options);
        match wire.is_some_and(|wire| wire.retries_by_itself()) {
            true => SubmissionOptions { retries, memory_growth, restart, ..forced },
            false => forced,
        }
    }

    /// Writes the forced properties over those of a request, and puts it into a namespace of the tenant.
    ///
    /// # Errors
    /// Named defaults select a namespace of another tenant.
    pub fn apply(&self, completed: &mut Completed) -> Result<(), Refusal> {
        let Completed { properties, origins } = completed;
        if let Some(own) = self.tenant.default_namespace() {
            let is_gateways = origins.get(NAMESPACE).is_some_and(|origin| origin == SPARK_DEFAULTS);
            match properties.get(NAMESPACE) {
                Some(namespace) if self.tenant.namespaces.contains(namespace) => {}
                Some(namespace) if !is_gateways => {
                    let reason = format!("`{namespace}` is not a namespace of tenant {}", self.tenant.name);
                    return Err(Refusal::property(NAMESPACE, reason));
                }
                // The gateway's default is for tenants that have this namespace.
                _ => {
                    properties.insert(NAMESPACE.to_owned(), own.to_owned());
                    origins.insert(NAMESPACE.to_owned(), TENANT.to_owned());
                }
            }
        }
        for (key, value) in &self.tenant.properties {
            properties.insert(key.clone(), value.clone());
            origins.insert(key.clone(), TENANT.to_owned());
        }
        Ok(())
    }
}

/// Compiles the policy of a tenant; without one, the default policy.
fn policy(tenant: &Tenant) -> Result<Policy, Vec<Fault>> {
    let document = tenant.policy.clone().unwrap_or_else(|| Value::Object(Map::new()));
    let document = PolicyDocument::deserialize(document)
        .map_err(|error| vec![Fault { path: "policy".to_owned(), message: error.to_string() }])?;
    Policy::compile(document, &tenant.service_accounts)
}

/// Returns a digest of all that the verdicts of a tenant's policy depend on.
fn digest(tenant: &Tenant) -> String {
    let Tenant { name, service_accounts, policy, .. } = tenant;
    let digest = Sha256::digest(json!([name, service_accounts, policy]).to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn stricter(gateway: &Caps, tenant: sparkgate_access::Caps) -> Caps {
    let time = |one: Option<Duration>, other: Option<Duration>| one.into_iter().chain(other).min();
    Caps {
        start_timeout: time(gateway.start_timeout, tenant.start_timeout),
        run_timeout: time(gateway.run_timeout, tenant.run_timeout),
        kill_grace: time(gateway.kill_grace, tenant.kill_grace),
        retries: gateway.retries.into_iter().chain(tenant.retries).min(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_cap_applies() {
        let seconds = |count| Some(Duration::from_secs(count));
        let gateway =
            Caps { start_timeout: seconds(10), run_timeout: seconds(10), retries: Some(3), ..Caps::default() };
        let tenant = sparkgate_access::Caps {
            run_timeout: seconds(5),
            kill_grace: seconds(7),
            retries: Some(9),
            ..Default::default()
        };
        let both = stricter(&gateway, tenant);
        assert_eq!((both.start_timeout, both.run_timeout), (seconds(10), seconds(5)));
        assert_eq!((both.kill_grace, both.retries), (seconds(7), Some(3)));
    }
}
