//! What the operator of the gateway decides for all submissions.

use std::{borrow::Cow, collections::BTreeMap};

use super::{Caps, SubmissionOptions, Submitter};
use crate::spark::{CreateSubmissionRequest, Refusal, SparkVersion, SubmitterFiles, expand_command_line};

/// All of it.
#[derive(Debug, Clone)]
pub struct Settings {
    pub spark: SparkSettings,
    /// Whether driver pods are held by a finalizer until their outcome is recorded. Without it, a pod that vanishes while
    /// no gateway runs, and is forgotten by the API server before one runs again, leaves its submission LOST.
    pub outcome_finalizer: bool,
    /// How much of the end of a driver's log is kept after its pod, in bytes before compression; 0 for nothing.
    pub kept_log: usize,
    pub caps: Caps,
}

/// The Spark side of the configuration.
#[derive(Debug, Clone)]
pub struct SparkSettings {
    pub version: SparkVersion,
    /// Properties for requests that don't set them, as a `spark-defaults.conf` at the submitter would give.
    pub defaults: BTreeMap<String, String>,
    /// What the operator gives for requests to choose from.
    pub submitter: Submitter,
    /// `SPARK_USER` of drivers for which nothing names a user: the account the gateway runs as.
    pub user: String,
}

impl SparkSettings {
    /// Whether the gateway's own defaults can be used at all: to be asked at start, since it is no request's fault.
    ///
    /// # Errors
    /// A [`Refusal`] of what they choose among the named ones.
    pub fn check_defaults(&self) -> Result<(), Refusal> {
        let mut properties = self.submitter.complete(BTreeMap::new(), &self.defaults)?.properties;
        SubmissionOptions::take(&mut properties).map(drop)
    }

    /// The request as it will be launched: a command line is understood, the defaults are filled in, and what the request
    /// sets wins.
    ///
    /// # Errors
    /// A [`Refusal`] of a command line, of defaults that aren't there, or of options of ours.
    pub fn resolve(&self, request: CreateSubmissionRequest) -> Result<Resolved, Refusal> {
        let expanded = match expand_command_line(&request, self.version)? {
            Cow::Owned(expanded) => Some(expanded),
            Cow::Borrowed(_) => None,
        };
        let mut request = expanded.unwrap_or(request);
        let completed = self.submitter.complete(request.spark_properties, &self.defaults)?;
        request.spark_properties = completed.properties;
        let options = SubmissionOptions::take(&mut request.spark_properties)?;
        self.submitter.name_templates(&mut request);
        let files = self.submitter.files_for(&request);
        Ok(Resolved { request, files, options, origins: completed.origins })
    }
}

/// A request with all that the operator adds to it.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub request: CreateSubmissionRequest,
    /// What a submitter would read from its disk.
    pub files: SubmitterFiles,
    /// What the properties ask of the gateway itself.
    pub options: SubmissionOptions,
    /// Where each property comes from that the request doesn't set itself.
    pub origins: BTreeMap<String, String>,
}
