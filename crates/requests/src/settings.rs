//! Settings of the operator that apply to all submissions.

use std::collections::BTreeMap;

use crate::{
    options::{Caps, SubmissionOptions},
    spark_lines::{SparkLines, file::SparkLinesError},
    submitter::{SPARK_DEFAULTS, Submitter},
};

use sparkgate_spark::{Refusal, SparkVersion};

/// All settings of the service.
#[derive(Debug, Clone)]
pub struct Settings {
    pub spark: SparkSettings,
    /// Whether a finalizer keeps driver pods until their outcome is recorded. Without it, a submission becomes LOST if its pod
    /// disappears while no gateway runs and the API server has forgotten it before one runs again.
    pub outcome_finalizer: bool,
    /// How much of the end of a driver's log is archived, in bytes before compression; 0 disables the archive.
    pub kept_log: usize,
    pub caps: Caps,
}

/// The part of the configuration that concerns Spark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparkSettings {
    /// The gateway's own release: that of its protocol, and of submissions for which nothing else selects one.
    pub version: SparkVersion,
    /// Defaults of properties, like those of a `spark-defaults.conf` at the submitter.
    pub defaults: BTreeMap<String, String>,
    /// Files and named defaults from which requests select.
    pub submitter: Submitter,
    /// `SPARK_USER` of drivers without a user in the request: the account of the gateway process.
    pub user: String,
    /// The releases that requests may select.
    pub lines: SparkLines,
}

impl SparkSettings {
    /// Creates the settings of a gateway that serves one release.
    pub fn new(version: SparkVersion, defaults: BTreeMap<String, String>, submitter: Submitter, user: String) -> Self {
        Self { version, defaults, submitter, user, lines: SparkLines::only(version) }
    }

    /// Reads the operator's file of Spark lines, if there is one, which these settings have to fit.
    ///
    /// # Errors
    /// All faults of the file's values, or the first one of its form; a default that selects a release that isn't served.
    pub fn with_lines(self, file: Option<&str>) -> Result<Self, SparkLinesError> {
        let lines = SparkLines::read(file, self.version, &self.defaults, &self.submitter)?;
        Ok(Self { lines, ..self })
    }

    /// Checks the gateway's own defaults. Called at start, because no request is responsible for them.
    ///
    /// # Errors
    /// A [`Refusal`] of the named defaults that they select, or of their options.
    pub fn check_defaults(&self) -> Result<(), Refusal> {
        let mut properties = self.submitter.complete(BTreeMap::new(), &[(SPARK_DEFAULTS, &self.defaults)])?.properties;
        SubmissionOptions::take(&mut properties).map(drop)
    }
}
