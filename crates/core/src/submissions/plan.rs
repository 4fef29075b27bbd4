//! Turns a request into a driver, to be accepted or only shown.

use std::sync::Arc;

use serde_json::Value;

use super::{Submissions, limits};
use crate::{
    judgement::Judgement,
    ports::Proposed,
    prepared::{Expanded, PreparedSubmission, driver_properties},
    redaction,
};
use sparkgate_access::Action;
use sparkgate_cluster::{Cluster, Manifest, OwnershipLabels};
use sparkgate_common::error::Error;
use sparkgate_policy::{ApplicationSize, UnknownSize};
use sparkgate_requests::options::SubmissionOptions;
use sparkgate_spark::{CreateSubmissionRequest, DriverNames, DriverObjects, Refusal, SparkVersion};
use sparkgate_store::Drawn;
use sparkgate_submission::{Installation, Wire};
use sparkgate_tenancy::{
    session::Session,
    tenancy::{NAMESPACE, TenantRules},
};
use sparkgate_traces::{Span, SpanKind, TraceContext};

/// The driver of a prepared submission.
#[derive(Debug, Clone)]
pub(super) struct Rendered {
    pub(super) names: DriverNames,
    pub(super) driver: DriverObjects,
    /// [`Manifest`] as JSON.
    pub(super) manifest: String,
    /// What it reserves on nodes, if its tenant may use a queue.
    pub(super) size: Option<ApplicationSize>,
}

/// What a request would become.
#[derive(Debug, Clone)]
pub struct Plan {
    prepared: PreparedSubmission,
    rendered: Rendered,
}

/// A property that the request itself doesn't set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedDefault {
    pub key: String,
    pub value: String,
    /// `spark-defaults`, `lines/<line>`, `tenant` or `defaults/<name>` for defaults of the operator, `spark-submit` for properties
    /// that Spark itself adds, and `sparkgate` for our labels.
    pub origin: String,
}

impl Submissions {
    /// Returns the request with the operator's defaults, the options for the gateway, and the rules of its tenant.
    pub(super) fn prepare(
        &self,
        caller: &Session,
        request: CreateSubmissionRequest,
        options: SubmissionOptions,
    ) -> Result<(PreparedSubmission, Arc<TenantRules>), Error> {
        aim(caller, &request);
        caller.require(Action::Submit)?;
        limits::arguments(&request)?;
        let expanded = Expanded::new(request, caller.spark_lines())?;
        aim(caller, &expanded.request);
        let rules = rules(caller, &expanded.request)?;
        caller.aims_at(&rules.tenant.name);
        let mut prepared = PreparedSubmission::for_tenant(expanded, options, &rules.spark, Some(&rules))?;
        if let Some(trace) = TraceContext::current() {
            prepared.continue_trace(&trace);
        }
        prepared.options.check(&rules.caps)?;
        self.attachments.validate(&proposed(caller, &rules, &prepared))?;
        if prepared.options.wire == Some(Wire::Kubeflow)
            && caller.access().may_own_pods(caller.principal(), &rules.tenant.name)
            && is_of_application(prepared.request.request.driver_pod_template.as_ref())
        {
            prepared.options.wire = Some(Wire::KubeflowOperator);
        }
        let (origins, forced) = (&prepared.origins, &rules.tenant.properties);
        let is_default = |key: &str| origins.contains_key(key) && !forced.contains_key(key);
        prepared.options = prepared.options.left_to_client(is_default).capped(&rules.caps);
        let asked = prepared.options.queue.clone();
        prepared.options = rules.forced(prepared.options);
        if prepared.options.queue != asked {
            prepared.queue_field = Refusal::property_field("spark.sparkgate.queue");
        }
        prepared.options.check_with(prepared.properties())?;
        prepared.options.keep_in(&mut prepared.request.request.spark_properties);
        limits::properties(prepared.properties())?;
        limits::retries(&prepared.request, &prepared.options)?;
        Ok((prepared, rules))
    }

    /// Builds the driver of a request without storing anything; the allocated id is discarded.
    ///
    /// # Errors
    /// Those of [`Submissions::submit`], except for conflicts with earlier submissions.
    pub async fn dry_run(
        &self,
        caller: &Session,
        request: CreateSubmissionRequest,
        options: SubmissionOptions,
    ) -> Result<Plan, Error> {
        caller.changes_nothing();
        let secrets = redaction::secrets_of(&request);
        let span = Span::child("dry run", SpanKind::Internal, || []);
        let planned = span.enter(self.plan(caller, request, options)).await;
        if let Err(error) = &planned {
            span.fail(error.kind());
        }
        planned.map_err(|error| redaction::refusal(error, &secrets))
    }

    async fn plan(
        &self,
        caller: &Session,
        request: CreateSubmissionRequest,
        options: SubmissionOptions,
    ) -> Result<Plan, Error> {
        let (prepared, rules) = self.prepare(caller, request, options)?;
        self.attachments.check(&proposed(caller, &rules, &prepared)).await?;
        let rendered = self.render(&rules, &prepared, &self.store.draw().await?).await?;
        if let Some(size) = &rendered.size {
            self.attachments.queue(&proposed(caller, &rules, &prepared), size).await?;
        }
        Ok(Plan { prepared, rendered })
    }
}

/// Returns what attachments know of a submission that isn't accepted yet.
pub(super) fn proposed<'a>(
    caller: &'a Session,
    rules: &'a TenantRules,
    prepared: &'a PreparedSubmission,
) -> Proposed<'a> {
    let PreparedSubmission { request, options, version, queue_field, .. } = prepared;
    let (tenant, principal) = (&rules.tenant.name, caller.principal().subject());
    Proposed { tenant, principal, request: &request.request, options, version: *version, queue_field }
}

impl Plan {
    pub fn name(&self) -> &str {
        &self.prepared.request.app_name
    }

    pub fn namespace(&self) -> &str {
        &self.rendered.driver.namespace
    }

    pub fn spark_version(&self) -> SparkVersion {
        self.prepared.version
    }

    pub fn options(&self) -> &SubmissionOptions {
        &self.prepared.options
    }

    /// Returns the objects in the order of their creation, without secrets.
    ///
    /// # Errors
    /// None: the manifest was written by this process.
    pub fn objects(&self) -> Result<Vec<serde_json::Value>, Error> {
        let mut objects = super::objects(&self.rendered.manifest)?;
        redaction::objects(&mut objects);
        Ok(objects)
    }

    /// Returns the warnings about properties of the request.
    pub fn warnings(&self) -> Vec<String> {
        self.prepared.warnings(self.prepared.misspelt())
    }

    /// Returns the properties of the driver that the request itself doesn't set, ordered by key.
    pub fn defaults(&self) -> Vec<AppliedDefault> {
        let asked_for = |key: &String, value: &String| {
            !self.prepared.origins.contains_key(key) && self.prepared.properties().get(key) == Some(value)
        };
        let added = driver_properties(&self.rendered.driver).into_iter().filter(|(key, value)| !asked_for(key, value));
        let applied = added.map(|(key, value)| {
            let of_ours = key.starts_with("spark.kubernetes.executor.label.sparkgate.dev/");
            let added = if of_ours { "sparkgate" } else { "spark-submit" };
            let origin = self.prepared.origins.get(&key).map_or(added, String::as_str).to_owned();
            AppliedDefault { value: redaction::property(&key, value), key, origin }
        });
        applied.collect()
    }
}

/// Builds the driver of a submission, and judges it.
///
/// # Errors
/// [`Error::Refused`], or [`Error::Policy`] with all rules that it breaks.
pub(super) fn render(
    cluster: &Cluster,
    installation: &Installation,
    finalizer: bool,
    rules: &TenantRules,
    prepared: &PreparedSubmission,
    drawn: &Drawn,
) -> Result<Rendered, Error> {
    let ownership = OwnershipLabels {
        submission: drawn.id.clone(),
        attempt: 1,
        installation,
        // A client that owns the pod may delete it in order to create another one of its name.
        finalizer: finalizer && !prepared.options.wire.is_some_and(Wire::owns_pods),
    };
    let names = prepared.names(drawn.at);
    let own = ownership.executor_properties();
    let mut driver = prepared.build(&rules.spark, &names, drawn.at, &own)?;
    limits::grace_period(&driver, &rules.caps)?;
    let judged = judge(rules, prepared, &mut driver, &own)?;
    let size = size(rules, prepared, &mut driver, &own)?;
    limits::check(&prepared.request.request, &names, &driver, cluster, &rules.tenant)?;
    ownership.put_on(&mut driver, &names.driver_pod);
    let manifest = Manifest::text_of(&driver, judged.as_ref());
    let manifest = manifest.map_err(|error| Error::Internal("writing the objects as JSON".into(), error.into()))?;
    Ok(Rendered { names, driver, manifest, size })
}

/// Computes what the application reserves on nodes, if a queue has to know.
fn size(
    rules: &TenantRules,
    prepared: &PreparedSubmission,
    driver: &mut DriverObjects,
    own: &[(String, String)],
) -> Result<Option<ApplicationSize>, Error> {
    if rules.tenant.default_queue.is_none() {
        return Ok(None);
    }
    let size = prepared.size(driver, own);
    let size = size.map_err(|error| Error::Internal("writing the objects as JSON".into(), error.into()))?;
    Ok(Some(size.map_err(|UnknownSize { property, reason }| Refusal::property(&property, reason))?))
}

/// Judges a driver by the policy of its tenant, if it has one. Returns what a later verdict will need.
fn judge(
    rules: &TenantRules,
    prepared: &PreparedSubmission,
    driver: &mut DriverObjects,
    own: &[(String, String)],
) -> Result<Option<Judgement>, Error> {
    let Some(policy) = &rules.policy else { return Ok(None) };
    let violations = prepared.judge(policy, driver, own);
    let violations = violations.map_err(|error| Error::Internal("writing the objects as JSON".into(), error.into()))?;
    match violations.is_empty() {
        true => Ok(Some(Judgement::new(rules, prepared))),
        false => Err(Error::Policy { tenant: rules.tenant.name.clone(), violations }),
    }
}

/// Returns whether a `SparkApplication` of Kubeflow's operator owns the pod of a template. The operator decides about no other pod.
fn is_of_application(template: Option<&Value>) -> bool {
    let owners = template.and_then(|template| template.pointer("/metadata/ownerReferences")?.as_array());
    owners.into_iter().flatten().any(|owner| {
        let group = owner["apiVersion"].as_str().and_then(|version| version.split('/').next());
        owner["kind"] == "SparkApplication" && group == Some("sparkoperator.k8s.io")
    })
}

/// Notes for the audit the tenant of the namespace that a request names, whether the caller may submit there or not.
fn aim(caller: &Session, request: &CreateSubmissionRequest) {
    let namespace = request.spark_properties.get(NAMESPACE);
    if let Some(tenant) = namespace.and_then(|namespace| caller.access().tenant_of_namespace(namespace)) {
        caller.aims_at(&tenant.name);
    }
}

/// Returns the rules of the tenant that a request belongs to.
fn rules(caller: &Session, request: &CreateSubmissionRequest) -> Result<Arc<TenantRules>, Refusal> {
    let namespace = request.spark_properties.get(NAMESPACE).map(String::as_str);
    let tenant = caller.access().tenant_for(caller.principal(), namespace);
    let tenant = tenant.map_err(|error| {
        if let Some(namespace) = namespace {
            caller.denied(None, || format!("no role submitter in the tenant of namespace {namespace}"));
        }
        Refusal::property(NAMESPACE, error.to_string())
    })?;
    let rules = caller.tenancy().rules(&tenant.name).cloned();
    rules.ok_or_else(|| Refusal::property(NAMESPACE, format!("there is no tenant {}", tenant.name)))
}
