//! Turns a request into a driver, to be accepted or only shown.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Submissions, limits};
use crate::{
    cluster::{Manifest, OwnershipLabels},
    service::{error::Error, options::SubmissionOptions, settings::Resolved},
    spark::{
        CreateSubmissionRequest, DriverNames, DriverObjects, NameEntropy, Object, SubmitContext, SubmitterFiles,
        app_name, build_driver, keys::misspelt, parse_properties,
    },
    store::Drawn,
};

/// Maximum number of warnings about one request.
const WARNINGS_MAX: usize = 20;

/// A request with everything derived from it.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) drawn: Drawn,
    pub(super) request: CreateSubmissionRequest,
    pub(super) options: SubmissionOptions,
    pub(super) origins: BTreeMap<String, String>,
    pub(super) files: SubmitterFiles,
    pub(super) namespace: String,
    pub(super) names: DriverNames,
    /// [`Manifest`] as JSON.
    pub(super) manifest: String,
    pub(super) driver: DriverObjects,
    /// `spark.app.name` or its default.
    pub(super) name: String,
}

/// A property that the request itself doesn't set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedDefault {
    pub key: String,
    pub value: String,
    /// `spark-defaults` or `defaults/<name>` for defaults of the operator, `spark-submit` for properties that Spark itself
    /// adds, and
    /// `sparkgate` for our labels.
    pub origin: String,
}

impl Submissions {
    /// Returns the request with the operator's defaults, and the options for the gateway.
    pub(super) fn resolve(
        &self,
        request: CreateSubmissionRequest,
        options: SubmissionOptions,
    ) -> Result<Resolved, Error> {
        limits::arguments(&request)?;
        let mut resolved = self.spark().resolve(request)?;
        resolved.options = options.or(resolved.options);
        resolved.options.check(&self.settings.caps)?;
        resolved.options = resolved.options.capped(&self.settings.caps);
        limits::properties(&resolved.request)?;
        limits::retries(&resolved.request, &resolved.options)?;
        Ok(resolved)
    }

    /// Builds the driver of a request.
    pub(super) fn plan(&self, resolved: Resolved, drawn: Drawn) -> Result<Plan, Error> {
        let Resolved { mut request, files, options, origins } = resolved;
        let version = self.spark().version;
        let ownership = OwnershipLabels {
            submission: drawn.id.clone(),
            attempt: 1,
            installation: &self.installation,
            finalizer: self.settings.outcome_finalizer,
        };
        let entropy = NameEntropy::from_uuids(Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
        let names = DriverNames::for_request(&request, version, drawn.at.timestamp_millis(), &entropy)?;
        let context =
            SubmitContext { version, names, submitted_at: drawn.at, user: self.spark().user.clone(), submitter: files };
        let properties = &mut request.spark_properties;
        // Executors get our labels; the stored request keeps its own values.
        let asked_for = ownership.executor_properties().map(|(key, value)| {
            let own = properties.insert(key.clone(), value);
            (key, own)
        });
        let mut driver = build_driver(&request, &context)?;
        for (key, own) in asked_for {
            match own {
                Some(own) => request.spark_properties.insert(key, own),
                None => request.spark_properties.remove(&key),
            };
        }
        let SubmitContext { names, submitter: files, .. } = context;
        limits::check(&request, &names, &driver, &self.cluster)?;
        ownership.put_on(&mut driver, &names.driver_pod);
        let manifest = Manifest::text_of(&driver);
        let manifest = manifest.map_err(|error| Error::Internal("writing the objects as JSON".into(), error.into()))?;
        let name = app_name(&request)?;
        Ok(Plan {
            drawn,
            request,
            options,
            origins,
            files,
            namespace: driver.namespace.clone(),
            names,
            manifest,
            driver,
            name,
        })
    }

    /// Builds the driver of a request without storing anything; the allocated id is discarded.
    ///
    /// # Errors
    /// Those of [`Submissions::submit`], except for conflicts with earlier submissions.
    pub async fn dry_run(&self, request: &CreateSubmissionRequest, options: SubmissionOptions) -> Result<Plan, Error> {
        let resolved = self.resolve(request.clone(), options)?;
        self.plan(resolved, self.store.draw().await?)
    }
}

impl Plan {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn options(&self) -> &SubmissionOptions {
        &self.options
    }

    /// Returns the objects in the order of their creation.
    ///
    /// # Errors
    /// None: the manifest was written by this process.
    pub fn objects(&self) -> Result<Vec<serde_json::Value>, Error> {
        super::objects(&self.manifest)
    }

    /// Returns the warnings about properties of the request.
    pub fn warnings(&self) -> Vec<String> {
        warnings(&self.request, &self.origins)
    }

    /// Returns the properties of the driver that the request itself doesn't set, ordered by key.
    pub fn defaults(&self) -> Vec<AppliedDefault> {
        let asked_for = |key: &String, value: &String| {
            !self.origins.contains_key(key) && self.request.spark_properties.get(key) == Some(value)
        };
        let added = properties(&self.driver).into_iter().filter(|(key, value)| !asked_for(key, value));
        let applied = added.map(|(key, value)| {
            let of_ours = key.starts_with("spark.kubernetes.executor.label.sparkgate.dev/");
            let added = if of_ours { "sparkgate" } else { "spark-submit" };
            let origin = self.origins.get(&key).map_or(added, String::as_str).to_owned();
            AppliedDefault { key, value, origin }
        });
        applied.collect()
    }
}

/// Returns a warning for each property that is probably misspelt, except for those of the operator's defaults.
pub(super) fn warnings(request: &CreateSubmissionRequest, origins: &BTreeMap<String, String>) -> Vec<String> {
    let own = request.spark_properties.keys().filter(|key| !origins.contains_key(*key));
    own.filter_map(|key| misspelt::warning(key)).take(WARNINGS_MAX).collect()
}

fn properties(driver: &DriverObjects) -> BTreeMap<String, String> {
    let mut texts = driver.resources.iter().filter_map(|object| match object {
        Object::ConfigMap(map) => map.data.as_ref()?.get("spark.properties"),
        _ => None,
    });
    texts.next_back().map(|text| parse_properties(text)).unwrap_or_default()
}
