//! The verdict of a tenant's policy about a driver. It is given before a submission is accepted, and again before its driver is
//! launched if the policy has changed since then.

use std::{collections::BTreeMap, future::ready, sync::Arc};

use chrono::{DateTime, Utc};
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ports::{Attachment, Attempt, NoLaunch, Resolution, Step},
    prepared::PreparedSubmission,
    redaction::message_about,
};
use sparkgate_cluster::{Manifest, is_executor_property};
use sparkgate_common::error::listed;
use sparkgate_policy::{ExecutorSet, Judged, Policy, Violation, executors};
use sparkgate_spark::{executor_template_of, parse_properties};
use sparkgate_store::Store;
use sparkgate_tenancy::{
    access_file::AccessFile,
    tenancy::{FileRead, Tenancy, TenantRules},
};

/// The reason of a submission that its tenant's policy refuses when it is launched.
const VIOLATION: &str = "PolicyViolation";

/// What a driver was judged by, and what a later verdict needs besides its objects. It is stored with the objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    tenant: String,
    /// The digest of the policy.
    policy: String,
    /// When the replica that judged had read its access file, for releases that know no generations.
    read_at: DateTime<Utc>,
    /// The generation of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    app_resource: String,
    /// The operator's defaults among the properties: the keys by their origins.
    defaults: BTreeMap<String, Vec<String>>,
    /// Whether Kubeflow's operator submitted it. Earlier releases didn't ask: what they accepted may have its labels.
    #[serde(default = "may_be")]
    of_operator: bool,
}

fn may_be() -> bool {
    true
}

/// The part of a [`Judgement`] that tells whether its verdict still holds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Basis<'a> {
    tenant: &'a str,
    policy: &'a str,
    read_at: DateTime<Utc>,
    #[serde(default)]
    generation: Option<i64>,
}

impl Basis<'_> {
    /// Returns whether it is from a newer access file than that of this replica.
    fn is_newer_than(&self, ours: &FileRead) -> bool {
        match (self.generation, ours.generation.known()) {
            (Some(theirs), Some(ours)) => ours < theirs,
            _ => ours.at < self.read_at,
        }
    }
}

fn violation(message: String) -> NoLaunch {
    NoLaunch { reason: VIOLATION, message }
}

/// The rules of tenants, as an attachment: an attempt is judged again before anything of it is created.
pub struct Rules {
    access: Arc<AccessFile>,
    store: Store,
}

impl Rules {
    pub fn new(access: Arc<AccessFile>, store: Store) -> Self {
        Self { access, store }
    }
}

impl Attachment for Rules {
    fn resolve<'a>(&'a self, attempt: &'a Attempt<'a>, manifest: &'a mut Manifest) -> Step<'a, Resolution> {
        let tenancy = self.access.current();
        if attempt.is_begun || tenancy.access().authentication().is_none() {
            return None;
        }
        if tenancy.file().generation.known().is_some() {
            let refused = refusal(&tenancy, attempt, manifest)?;
            return Some(ready(Ok(refused)).boxed());
        }
        let judge = async move {
            tenancy.file().generation.number(&self.store).await?;
            Ok(refusal(&tenancy, attempt, manifest).unwrap_or(Resolution::Ready))
        };
        Some(judge.boxed())
    }
}

fn refusal(tenancy: &Tenancy, attempt: &Attempt<'_>, manifest: &Manifest) -> Option<Resolution> {
    let why = judge_again(tenancy, attempt.namespace, manifest).err()?;
    Some(refused(why, manifest))
}

/// Refuses an attempt whose objects were changed for its launch, if the present policy refuses the result.
pub fn refusal_of_changed(access: &AccessFile, namespace: &str, manifest: &Manifest) -> Option<Resolution> {
    let tenancy = access.current();
    tenancy.access().authentication()?;
    let why = judge_now(&tenancy, tenancy.rules_of_namespace(namespace)?, manifest).err()?;
    Some(refused(why, manifest))
}

fn refused(why: NoLaunch, manifest: &Manifest) -> Resolution {
    Resolution::Refused(NoLaunch { message: message_about(manifest, why.message), ..why })
}

impl Judgement {
    /// Records that the policy of a tenant permits a driver.
    pub fn new(rules: &TenantRules, prepared: &PreparedSubmission) -> Self {
        let mut defaults = BTreeMap::<String, Vec<String>>::new();
        for (key, origin) in &prepared.origins {
            defaults.entry(origin.clone()).or_default().push(key.clone());
        }
        Self {
            tenant: rules.tenant.name.clone(),
            policy: rules.digest.clone(),
            read_at: rules.file.at,
            generation: rules.file.generation.known(),
            app_resource: prepared.request.request.app_resource.clone(),
            defaults,
            of_operator: prepared.is_of_operator(),
        }
    }

    /// Returns what can be known of objects that no policy has judged yet, because there was no access file: the properties with
    /// the present values of the operator's defaults are such defaults. `line` are the defaults of their Spark release.
    fn unjudged(rules: &TenantRules, line: &BTreeMap<String, String>, properties: &BTreeMap<String, String>) -> Self {
        let mut defaults = BTreeMap::<String, Vec<String>>::new();
        for (key, value) in properties {
            let TenantRules { tenant, spark, .. } = rules;
            let mut lists = [&tenant.properties, &tenant.defaults, &spark.defaults, line].into_iter();
            if lists.any(|list| list.get(key) == Some(value)) {
                defaults.entry("the operator".to_owned()).or_default().push(key.clone());
            }
        }
        Self {
            tenant: rules.tenant.name.clone(),
            policy: String::new(),
            read_at: rules.file.at,
            generation: rules.file.generation.known(),
            app_resource: String::new(),
            defaults,
            of_operator: may_be(),
        }
    }
}

/// Judges the objects of an attempt before they are created, unless the policy is the one that they were judged by.
///
/// A replica whose access file is of an earlier generation than that of the one that judged doesn't judge: replicas read a changed file
/// at different times, and the newer file may permit more.
///
/// # Errors
/// [`NoLaunch`] with all violations, or if the namespace isn't the tenant's any more.
fn judge_again(tenancy: &Tenancy, namespace: &str, manifest: &Manifest) -> Result<(), NoLaunch> {
    if tenancy.access().authentication().is_none() {
        return Ok(());
    }
    let judged = manifest.judged.as_ref().map(|judged| judged.get());
    let basis: Option<Basis<'_>> = judged.map(serde_json::from_str).transpose().map_err(unreadable)?;
    let rules = tenancy.rules_of_namespace(namespace);
    let is_same = |basis: &Basis<'_>| rules.is_some_and(|rules| rules.digest == basis.policy);
    if basis.as_ref().is_some_and(|basis| is_same(basis) || basis.is_newer_than(tenancy.file())) {
        return Ok(());
    }
    let Some(rules) = rules else {
        return Err(violation(format!("namespace {namespace} doesn't belong to a tenant any more")));
    };
    let tenant = &rules.tenant.name;
    if let Some(before) = basis.filter(|basis| basis.tenant != tenant) {
        let message = format!("namespace {namespace} doesn't belong to tenant {} any more", before.tenant);
        return Err(violation(message));
    }
    judge_now(tenancy, rules, manifest)
}

fn unreadable(error: serde_json::Error) -> NoLaunch {
    NoLaunch::unreadable(format!("the stored objects can't be read: {error}"))
}

/// Judges the objects of an attempt by the present policy.
fn judge_now(tenancy: &Tenancy, rules: &TenantRules, manifest: &Manifest) -> Result<(), NoLaunch> {
    let Some(policy) = &rules.policy else { return Ok(()) };
    let tenant = &rules.tenant.name;
    let objects = manifest.unmarked().map_err(unreadable)?;
    let properties = properties(&objects);
    let judgement = match &manifest.judged {
        Some(judged) => serde_json::from_str(judged.get()).map_err(unreadable)?,
        None => {
            let line = version(&objects).and_then(|version| tenancy.spark_lines().defaults_of(version));
            Judgement::unjudged(rules, line.unwrap_or(&BTreeMap::new()), &properties)
        }
    };
    let violations = judge(policy, &judgement, &objects, &properties);
    if violations.is_empty() {
        return Ok(());
    }
    let violations = listed(&violations);
    Err(violation(format!("the present policy of tenant {tenant} refuses the driver: {violations}")))
}

fn judge(
    policy: &Policy,
    judgement: &Judgement,
    objects: &[Value],
    properties: &BTreeMap<String, String>,
) -> Vec<Violation> {
    let each = judgement.defaults.iter().flat_map(|(origin, keys)| keys.iter().map(move |key| (key, origin)));
    let origins = each.map(|(key, origin)| (key.clone(), origin.clone())).collect();
    policy.judge(&Judged {
        objects,
        properties,
        origins: &origins,
        // Only for the causes of violations.
        driver_template: None,
        executor_template: executor_template_of(objects).as_ref(),
        resources: &[("appResource", &judgement.app_resource)],
        of_operator: judgement.of_operator,
    })
}

/// Returns the Spark release that the driver was built for.
fn version(objects: &[Value]) -> Option<&str> {
    objects.iter().find_map(|object| object["metadata"]["labels"]["spark-version"].as_str())
}

/// Returns the executors that the driver of these objects will create.
///
/// # Errors
/// The stored objects can't be read.
pub fn executors_of(manifest: &Manifest) -> Result<ExecutorSet, NoLaunch> {
    let objects = manifest.unmarked().map_err(unreadable)?;
    let app_resource = match &manifest.judged {
        Some(judged) => serde_json::from_str::<Judgement>(judged.get()).map_err(unreadable)?.app_resource,
        None => String::new(),
    };
    let (properties, template) = (properties(&objects), executor_template_of(&objects));
    Ok(executors(&Judged {
        objects: &objects,
        properties: &properties,
        origins: &BTreeMap::new(),
        driver_template: None,
        executor_template: template.as_ref(),
        resources: &[("appResource", &app_resource)],
        of_operator: false,
    }))
}

/// Returns the properties that the driver process will get, without those of ours.
fn properties(objects: &[Value]) -> BTreeMap<String, String> {
    let mut texts = objects.iter().filter_map(|object| object["data"]["spark.properties"].as_str());
    let mut properties = texts.next_back().map(parse_properties).unwrap_or_default();
    properties.retain(|key, _| !is_executor_property(key));
    properties
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;
    use tempfile::NamedTempFile;

    use super::*;
    use sparkgate_requests::options::Caps;
    use sparkgate_requests::settings::Settings;
    use sparkgate_requests::settings::SparkSettings;
    use sparkgate_requests::submitter::Submitter;
    use sparkgate_tenancy::access_file::AccessFile;

    /// Returns a tenant whose policy permits no image of a [`manifest`].
    fn tenancy() -> std::sync::Arc<Tenancy> {
        let mut file = NamedTempFile::new().unwrap();
        let text = "authentication: {}\ntenants: {red: {namespaces: [red], policy: {images: [none]}}}\n";
        file.write_all(text.as_bytes()).unwrap();
        let (version, user) = ("4.3.0".parse().unwrap(), "tester".to_owned());
        let spark = SparkSettings::new(version, BTreeMap::new(), Submitter::default(), user);
        let settings = Settings { spark, outcome_finalizer: true, caps: Caps::default(), kept_log: 0 };
        AccessFile::open(file.path().to_owned(), settings).unwrap().current()
    }

    fn manifest(judged: Option<Judgement>) -> Manifest {
        let container =
            json!({"name": "driver", "image": "spark", "securityContext": {"allowPrivilegeEscalation": false}});
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}});
        let properties = "spark.kubernetes.container.image=spark\n";
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"spark.properties": properties}});
        serde_json::from_value(json!({"before": [], "pod": pod, "beside": [map], "judged": judged})).unwrap()
    }

    fn judged(tenancy: &Tenancy) -> Judgement {
        Judgement::unjudged(tenancy.rules("red").unwrap(), &BTreeMap::new(), &BTreeMap::new())
    }

    #[test]
    fn a_driver_is_judged_again_only_by_another_policy_that_is_not_older() {
        let tenancy = tenancy();
        let verdict = |judged| judge_again(&tenancy, "red", &manifest(judged)).map_err(|why| why.reason);
        let policy = tenancy.rules("red").unwrap().digest.clone();
        assert_eq!(verdict(Some(Judgement { policy, ..judged(&tenancy) })), Ok(()), "the same policy");
        assert_eq!(verdict(Some(judged(&tenancy))), Err(VIOLATION));
        let read_at = tenancy.file().at + chrono::TimeDelta::milliseconds(1);
        let by_time = Judgement { read_at, ..judged(&tenancy) };
        assert_eq!(verdict(Some(by_time)), Ok(()), "a replica of an earlier release has a newer file");
        assert_eq!(verdict(None), Err(VIOLATION), "it was accepted without an access file");
    }

    #[test]
    fn a_namespace_of_another_tenant_or_of_none_is_refused() {
        let tenancy = tenancy();
        let why = |namespace, judged| judge_again(&tenancy, namespace, &manifest(Some(judged))).unwrap_err().message;
        let message = why("red", Judgement { tenant: "blue".to_owned(), ..judged(&tenancy) });
        assert!(message.contains("namespace red doesn't belong to tenant blue any more"), "{message}");
        assert!(why("green", judged(&tenancy)).contains("namespace green doesn't belong to a tenant any more"));
    }
}
