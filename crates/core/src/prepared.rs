//! A request that is ready to become a driver: what submit, dry run and `sparkgate render` have in common. It is parsed, completed
//! and named once.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    iter, mem,
};

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use sparkgate_policy::{ApplicationSize, Judged, Policy, UnknownSize, Violation};
use sparkgate_requests::{
    options::{
        SubmissionOptions,
        again::{self, Restart},
        queue::{self, QueueWords},
    },
    settings::SparkSettings,
    spark_lines::{SPARK_VERSION, Selection, Selector, SparkLine, SparkLines},
    submitter::{Layers, SPARK_DEFAULTS},
};
use sparkgate_spark::{
    CreateSubmissionRequest, DriverNames, DriverObjects, NameEntropy, NamedRequest, Object, Refusal, SparkVersion,
    SubmitContext, SubmitterFiles, build_driver, expand_command_line, has_command_line,
    keys::{self, misspelt},
    options_without_effect, parse_properties, sizes,
};
use sparkgate_submission::Wire;
use sparkgate_tenancy::tenancy::{TENANT, TenantRules};
use sparkgate_traces::TraceContext;

/// Origin of properties that the gateway itself adds.
const OURS: &str = "sparkgate";
/// Prefixes of the properties with environment variables of the driver and of its executors.
const DRIVER_ENV: &str = "spark.kubernetes.driverEnv.";
const EXECUTOR_ENV: &str = "spark.executorEnv.";
/// The variable that OpenTelemetry continues a trace from.
const TRACEPARENT: &str = "TRACEPARENT";

/// Maximum number of warnings about one request.
const WARNINGS_MAX: usize = 20;

/// A request with everything that the operator adds to it.
#[derive(Debug, Clone)]
pub struct PreparedSubmission {
    /// The request as it will be launched: with all defaults, and without the options for the gateway.
    pub request: NamedRequest,
    /// The Spark release whose contract the driver follows.
    pub version: SparkVersion,
    /// Options for the gateway itself.
    pub options: SubmissionOptions,
    /// Origins of the properties that the request itself doesn't set.
    pub origins: BTreeMap<String, String>,
    /// Files that a submitter would read from its disk.
    files: SubmitterFiles,
    /// The field of the request that names the queue in `options`.
    pub queue_field: String,
    /// Options of its command line that have no effect.
    without_effect: BTreeMap<&'static str, String>,
    /// Warnings about words for queues, in a tenant that has none.
    ignored_queues: Vec<String>,
}

/// A request whose command line is parsed.
#[derive(Debug, Clone)]
pub struct Expanded {
    pub request: CreateSubmissionRequest,
    /// The command line as it was sent, and the release that parsed it, if other releases are served.
    line: Option<(CreateSubmissionRequest, SparkVersion)>,
    /// Options of the command line that have no effect, with their values.
    without_effect: BTreeMap<&'static str, String>,
}

impl Expanded {
    /// Parses the command line of a request, if it has one. The release of the submission may be selected in the line itself, so
    /// the first release counts that can parse it.
    ///
    /// # Errors
    /// A [`Refusal`] of a line that no served release can parse.
    pub fn new(request: CreateSubmissionRequest, lines: &SparkLines) -> Result<Self, Refusal> {
        if !has_command_line(&request) {
            return Ok(Self { request, line: None, without_effect: BTreeMap::new() });
        }
        let without_effect = options_without_effect(&request, lines.newest());
        if lines.versions().len() == 1 {
            return Ok(Self { request: expand_command_line(request, lines.newest())?, line: None, without_effect });
        }
        let selected = request.spark_properties.get(SPARK_VERSION).map(String::as_str);
        let mut refusal = None;
        for version in lines.in_order_of_likelihood(selected) {
            match expand_command_line(request.clone(), version) {
                Ok(expanded) => return Ok(Self { request: expanded, line: Some((request, version)), without_effect }),
                Err(error) => {
                    refusal.get_or_insert(error);
                }
            }
        }
        // There is always a release, so there was one that refused.
        Err(refusal.unwrap_or_else(|| Refusal::field("appArgs", "no Spark release is served")))
    }

    /// Returns the request, after the release of the submission has parsed the command line, too.
    fn into_parsed_by(self, version: SparkVersion) -> Result<CreateSubmissionRequest, Refusal> {
        match self.line {
            Some((line, parsed_by)) if parsed_by != version => expand_command_line(line, version).map(|_| self.request),
            _ => Ok(self.request),
        }
    }
}

impl PreparedSubmission {
    /// Parses the command line of a request and fills in defaults. Properties of the request override defaults; those that its
    /// tenant forces override both.
    ///
    /// # Errors
    /// A [`Refusal`] of a command line, of unknown named defaults, of options of the gateway, of a release that isn't served, or of
    /// a request that names neither an application nor a resource after which to name it.
    pub fn new(request: CreateSubmissionRequest, settings: &SparkSettings) -> Result<Self, Refusal> {
        let expanded = Expanded::new(request, &settings.lines)?;
        Self::for_tenant(expanded, SubmissionOptions::default(), settings, None)
    }

    /// Does the same for a request of a tenant, whose command line is parsed already. `options` override those in the properties.
    ///
    /// # Errors
    /// As for [`PreparedSubmission::new`], if named defaults select a namespace of another tenant, and if the tenant may not use
    /// the release.
    pub fn for_tenant(
        mut expanded: Expanded,
        options: SubmissionOptions,
        settings: &SparkSettings,
        rules: Option<&TenantRules>,
    ) -> Result<Self, Refusal> {
        let own = mem::take(&mut expanded.request.spark_properties);
        let mut without_effect = mem::take(&mut expanded.without_effect);
        let tenants = rules.map(|rules| (TENANT, &rules.tenant.defaults));
        let mut layers =
            settings.submitter.layers(&own, iter::once((SPARK_DEFAULTS, &settings.defaults)).chain(tenants))?;
        let selection = selection(&options, &own, &layers, rules);
        let line = settings.lines.select(selection, rules.map(|rules| &rules.tenant))?;
        if !line.defaults.is_empty() {
            layers.add_above_common(&line.origin, &line.defaults);
        }
        let mut completed = layers.complete(own);
        if let Some(rules) = rules {
            rules.apply(&mut completed)?;
        }
        let mut request = expanded.into_parsed_by(line.version)?;
        request.spark_properties = completed.properties;
        let requested = QueueWords {
            field: options.queue.as_deref().map(|name| (name, options.wire == Some(Wire::Livy))),
            option: without_effect.remove(queue::OPTION).as_deref(),
            properties: &request.spark_properties,
            origins: &completed.origins,
        }
        .resolve(rules.is_some_and(|rules| rules.tenant.default_queue.is_some()))?;
        for key in &requested.consumed {
            request.spark_properties.remove(*key);
        }
        let supervised = without_effect.remove(again::SUPERVISE_OPTION).map(|_| Restart::OnFailure);
        let options = options.or(SubmissionOptions::take(&mut request.spark_properties)?);
        let restart = options.restart.or(supervised);
        let options = SubmissionOptions { queue: requested.name, restart, ..options };
        settings.submitter.name_templates(&mut request);
        let mut files = settings.submitter.files_for(&request);
        add_templates(&mut files, line, &request, &completed.origins);
        let mut request = NamedRequest::new(request, line.version)?;
        request.is_connect_server = options.session.is_some();
        Ok(Self {
            request,
            version: line.version,
            options,
            origins: completed.origins,
            files,
            queue_field: requested.field,
            without_effect,
            ignored_queues: requested.warnings,
        })
    }

    /// Hands a trace to the driver and its executors, in environment variables, like defaults of the operator. A trace of the
    /// request itself stays.
    pub fn continue_trace(&mut self, trace: &TraceContext) {
        let request = &mut self.request.request;
        let properties = &mut request.spark_properties;
        for prefix in [DRIVER_ENV, EXECUTOR_ENV] {
            let own = request.environment_variables.contains_key(TRACEPARENT) && prefix == DRIVER_ENV;
            if own || properties.contains_key(&format!("{prefix}{TRACEPARENT}")) {
                continue;
            }
            for (name, value) in trace.environment() {
                // Spark would replace `${…}`, which a tracestate may contain.
                if !value.contains('$')
                    && let Entry::Vacant(free) = properties.entry(format!("{prefix}{name}"))
                {
                    self.origins.insert(free.key().clone(), OURS.to_owned());
                    free.insert(value.to_owned());
                }
            }
        }
    }

    /// Generates names for an attempt, different ones with each call.
    pub fn names(&self, submitted_at: DateTime<Utc>) -> DriverNames {
        let id = Uuid::new_v4;
        let entropy = NameEntropy::from_uuids(id(), id(), id(), id());
        DriverNames::for_request(&self.request, submitted_at.timestamp_millis(), &entropy)
    }

    /// Builds the driver, with `properties` over those of the request.
    ///
    /// # Errors
    /// A [`Refusal`], where spark-submit would refuse.
    pub fn build(
        &self,
        settings: &SparkSettings,
        names: &DriverNames,
        submitted_at: DateTime<Utc>,
        properties: &[(String, String)],
    ) -> Result<DriverObjects, Refusal> {
        let (version, user, submitter) = (self.version, &*settings.user, &self.files);
        let context = SubmitContext { version, names, submitted_at, user, submitter, properties };
        build_driver(&self.request, &context)
    }

    /// Judges a driver by a policy, before our own labels are put on it: nothing else may have them. `own` are the properties that
    /// put them on executors. The executors' template is replaced by what was judged.
    ///
    /// # Errors
    /// The objects can't be written as JSON, which doesn't happen.
    pub fn judge(
        &self,
        policy: &Policy,
        driver: &mut DriverObjects,
        own: &[(String, String)],
    ) -> serde_json::Result<Vec<Violation>> {
        self.judged(driver, own, |judged| policy.judge(judged))
    }

    /// Returns what the application reserves on nodes.
    ///
    /// # Errors
    /// The objects can't be written as JSON, which doesn't happen. The inner one is [`UnknownSize`].
    pub fn size(
        &self,
        driver: &mut DriverObjects,
        own: &[(String, String)],
    ) -> serde_json::Result<Result<ApplicationSize, UnknownSize>> {
        self.judged(driver, own, ApplicationSize::of)
    }

    fn judged<T>(
        &self,
        driver: &mut DriverObjects,
        own: &[(String, String)],
        read: impl FnOnce(&Judged<'_>) -> T,
    ) -> serde_json::Result<T> {
        let template = driver.executor_template();
        if let Some(template) = &template {
            driver.set_executor_template(template);
        }
        let mut properties = driver_properties(driver);
        for (key, _) in own {
            properties.remove(key);
        }
        let objects = driver.to_values()?;
        let request = &self.request.request;
        Ok(read(&Judged {
            objects: &objects,
            properties: &properties,
            origins: &self.origins,
            driver_template: request.driver_pod_template.as_ref(),
            executor_template: template.as_ref(),
            resources: &[("appResource", &request.app_resource)],
            of_operator: self.is_of_operator(),
        }))
    }

    /// Returns how large the request is, as a number of values: what building and judging its driver costs grows with it.
    pub fn weight(&self) -> usize {
        let request = &self.request.request;
        let templates = [&request.driver_pod_template, &request.executor_pod_template].into_iter().flatten();
        let own = request.app_args.len() + request.environment_variables.len() + request.spark_properties.len();
        templates.map(weight).fold(own, usize::saturating_add)
    }

    /// Returns whether it came by the API of Kubeflow's operator.
    pub fn is_of_operator(&self) -> bool {
        matches!(self.options.wire, Some(Wire::Kubeflow | Wire::KubeflowOperator))
    }

    /// Returns the properties of the driver.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.request.request.spark_properties
    }

    /// Returns the properties that are probably misspelt, each with a warning, except for those of the operator's defaults.
    /// Compares each unknown one with all that Spark has: called once, after the size of all properties was checked.
    pub fn misspelt(&self) -> Vec<(&str, String)> {
        let own = self.properties().keys().filter(|key| !self.origins.contains_key(*key));
        own.filter_map(|key| Some((key.as_str(), misspelt::warning(key)?))).take(WARNINGS_MAX).collect()
    }

    /// Returns a warning for each option of the command line, and for each word for a queue, that has no effect.
    pub fn ignored(&self) -> impl Iterator<Item = String> {
        let options = self.without_effect.keys();
        let options = options.map(|option| format!("{option} has no effect on Kubernetes, and is ignored"));
        options.chain(self.ignored_queues.iter().cloned())
    }

    /// Returns all warnings for the client: of the properties that are `misspelt`, of what doesn't work, and of what has no effect.
    pub fn warnings(&self, misspelt: Vec<(&str, String)>) -> Vec<String> {
        let misspelt = misspelt.into_iter().map(|(_, warning)| warning);
        misspelt.chain(self.small_heaps()).chain(self.ignored()).collect()
    }

    /// Returns a warning for each heap with which Spark doesn't start.
    fn small_heaps(&self) -> impl Iterator<Item = String> {
        ["spark.driver.memory", "spark.executor.memory"].into_iter().filter_map(move |key| {
            let set = self.properties().get(key)?;
            let heap = sizes::mib(set, self.version).filter(|heap| *heap < sizes::LEAST_HEAP_MIB)?;
            let least = sizes::LEAST_HEAP_MIB;
            Some(format!(
                "{key} is {set}, which is {heap} MiB: Spark doesn't start with a heap of less than {least} MiB"
            ))
        })
    }

    /// Returns the properties that no Spark release knows, and those that are `misspelt`.
    pub fn unknown(&self, misspelt: &[(&str, String)]) -> Vec<&str> {
        let is_misspelt = |key: &str| misspelt.iter().any(|(misspelt, _)| *misspelt == key);
        let keys = self.properties().keys().map(String::as_str);
        keys.filter(|key| !keys::is_known(key) || is_misspelt(key)).take(WARNINGS_MAX).collect()
    }
}

/// Returns the number of values in a template. Of YAML it is estimated; an alias may stand for any number of values.
fn weight(template: &Value) -> usize {
    const VALUE: usize = 8;
    fn values(value: &Value) -> usize {
        match value {
            Value::Array(list) => list.iter().map(values).sum::<usize>() + 1,
            Value::Object(map) => map.values().map(values).sum::<usize>() + 1,
            _ => 1,
        }
    }
    match template {
        Value::String(text) if text.contains('*') => usize::MAX,
        Value::String(text) => text.len() / VALUE,
        template => values(template),
    }
}

/// Returns the selection of the release: a tenant's forced property, the request's field, its property, the defaults.
fn selection<'a>(
    options: &'a SubmissionOptions,
    own: &'a BTreeMap<String, String>,
    layers: &'a Layers<'_>,
    rules: Option<&'a TenantRules>,
) -> Option<Selection<'a>> {
    let tenant = rules.map(|rules| &rules.tenant);
    if let Some(text) = tenant.and_then(|tenant| tenant.properties.get(SPARK_VERSION)) {
        return Some(Selection { text, by: Selector::Default(TENANT) });
    }
    if let Some(text) = &options.spark_version {
        return Some(Selection { text, by: Selector::Field });
    }
    if let Some(text) = own.get(SPARK_VERSION) {
        return Some(Selection { text: text.trim(), by: Selector::Property });
    }
    let default = layers.get(SPARK_VERSION).map(|(origin, text)| (origin, text.trim()));
    let tenants = tenant.and_then(|tenant| tenant.default_spark_version.as_deref()).map(|text| (TENANT, text));
    // That of the tenant is weaker than named defaults.
    let default = default.filter(|(origin, _)| tenants.is_none() || *origin != SPARK_DEFAULTS).or(tenants);
    default.map(|(origin, text)| Selection { text, by: Selector::Default(origin) })
}

/// Adds the templates of a line that its own defaults name.
fn add_templates(
    files: &mut SubmitterFiles,
    line: &SparkLine,
    request: &CreateSubmissionRequest,
    origins: &BTreeMap<String, String>,
) {
    for (name, file) in &line.templates {
        let mut properties = request.spark_properties.iter();
        if properties.any(|(key, value)| value == name && origins.get(key) == Some(&line.origin)) {
            files.named.insert(name.clone(), file.clone());
        }
    }
}

/// Returns the properties that the driver process gets.
pub fn driver_properties(driver: &DriverObjects) -> BTreeMap<String, String> {
    let mut texts = driver.resources.iter().filter_map(|object| match object {
        Object::ConfigMap(map) => map.data.as_ref()?.get("spark.properties"),
        _ => None,
    });
    texts.next_back().map(|text| parse_properties(text)).unwrap_or_default()
}

#[cfg(test)]
mod spark_lines_tests;
#[cfg(test)]
mod tests;
