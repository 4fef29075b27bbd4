//! A request that is ready to become a driver: what submit, dry run and `sparkgate render` have in common. It is parsed, completed
//! and named once.

use std::{collections::BTreeMap, iter};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    options::SubmissionOptions,
    settings::SparkSettings,
    submitter::SPARK_DEFAULTS,
    tenancy::{TENANT, TenantRules},
};
use crate::policy::{Judged, Policy, Violation};
use crate::spark::{
    CreateSubmissionRequest, DriverNames, DriverObjects, NameEntropy, NamedRequest, Object, Refusal, SubmitContext,
    SubmitterFiles, build_driver, expand_command_line,
    keys::{self, misspelt},
    parse_properties,
};

/// Maximum number of warnings about one request.
const WARNINGS_MAX: usize = 20;

/// A request with everything that the operator adds to it.
#[derive(Debug, Clone)]
pub struct PreparedSubmission {
    /// The request as it will be launched: with all defaults, and without the options for the gateway.
    pub request: NamedRequest,
    /// Options for the gateway itself.
    pub options: SubmissionOptions,
    /// Origins of the properties that the request itself doesn't set.
    pub origins: BTreeMap<String, String>,
    /// Files that a submitter would read from its disk.
    files: SubmitterFiles,
}

impl PreparedSubmission {
    /// Parses the command line of a request and fills in defaults. Properties of the request override defaults; those that its
    /// tenant forces override both.
    ///
    /// # Errors
    /// A [`Refusal`] of a command line, of unknown named defaults, of options of the gateway, or of a request that names neither
    /// an application nor a resource after which to name it.
    pub fn new(request: CreateSubmissionRequest, settings: &SparkSettings) -> Result<Self, Refusal> {
        Self::of_tenant(expand_command_line(request, settings.version)?, settings, None)
    }

    /// Does the same for a request of a tenant, whose command line is parsed already.
    ///
    /// # Errors
    /// As for [`PreparedSubmission::new`], and if named defaults select a namespace of another tenant.
    pub(super) fn of_tenant(
        mut request: CreateSubmissionRequest,
        settings: &SparkSettings,
        rules: Option<&TenantRules>,
    ) -> Result<Self, Refusal> {
        let tenants = rules.map(|rules| (TENANT, &rules.tenant.defaults));
        let lowest: Vec<_> = iter::once((SPARK_DEFAULTS, &settings.defaults)).chain(tenants).collect();
        let mut completed = settings.submitter.complete(request.spark_properties, &lowest)?;
        if let Some(rules) = rules {
            rules.apply(&mut completed)?;
        }
        request.spark_properties = completed.properties;
        let options = SubmissionOptions::take(&mut request.spark_properties)?;
        settings.submitter.name_templates(&mut request);
        let files = settings.submitter.files_for(&request);
        let request = NamedRequest::new(request, settings.version)?;
        Ok(Self { request, options, origins: completed.origins, files })
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
        let SparkSettings { version, user, .. } = settings;
        let context =
            SubmitContext { version: *version, names, submitted_at, user, submitter: &self.files, properties };
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
        Ok(policy.judge(&Judged {
            objects: &objects,
            properties: &properties,
            origins: &self.origins,
            driver_template: request.driver_pod_template.as_ref(),
            executor_template: template.as_ref(),
            resources: &[("appResource", &request.app_resource)],
        }))
    }

    /// Returns the properties of the driver.
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.request.request.spark_properties
    }

    /// Returns the properties that are probably misspelt, each with a warning, except for those of the operator's defaults.
    /// Compares each unknown one with all that Spark has: called once, after the size of all properties was checked.
    pub(super) fn misspelt(&self) -> Vec<(&str, String)> {
        let own = self.properties().keys().filter(|key| !self.origins.contains_key(*key));
        own.filter_map(|key| Some((key.as_str(), misspelt::warning(key)?))).take(WARNINGS_MAX).collect()
    }

    /// Returns the properties that no Spark release knows, and those that are `misspelt`.
    pub(super) fn unknown(&self, misspelt: &[(&str, String)]) -> Vec<&str> {
        let is_misspelt = |key: &str| misspelt.iter().any(|(misspelt, _)| *misspelt == key);
        let keys = self.properties().keys().map(String::as_str);
        keys.filter(|key| !keys::is_known(key) || is_misspelt(key)).take(WARNINGS_MAX).collect()
    }
}

/// Returns the properties that the driver process gets.
pub(super) fn driver_properties(driver: &DriverObjects) -> BTreeMap<String, String> {
    let mut texts = driver.resources.iter().filter_map(|object| match object {
        Object::ConfigMap(map) => map.data.as_ref()?.get("spark.properties"),
        _ => None,
    });
    texts.next_back().map(|text| parse_properties(text)).unwrap_or_default()
}
