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
use crate::spark::{
    CreateSubmissionRequest, DriverNames, DriverObjects, NameEntropy, NamedRequest, Refusal, SubmitContext,
    SubmitterFiles, build_driver, expand_command_line,
    keys::{self, misspelt},
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
