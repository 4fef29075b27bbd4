//! Spark lines: the releases that the gateway serves side by side, one of each line, and what the operator's file adds to the
//! submissions of each.

pub mod file;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;

use crate::submitter::OWN;
use sparkgate_access::Tenant;
use sparkgate_spark::{Refusal, SparkVersion};

/// The property with which a request selects its release. It is not Spark's, and the driver never sees it.
pub const SPARK_VERSION: &str = "spark.sparkgate.sparkVersion";

const IMAGE: &str = "spark.kubernetes.container.image";

/// The release of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparkLine {
    pub version: SparkVersion,
    /// The origin of its defaults: `lines/4.1`.
    pub origin: String,
    /// Properties of submissions that don't set them. They replace those of `--spark-defaults`.
    pub defaults: BTreeMap<String, String>,
    /// The pod templates that the defaults name, for tenants that may not name these files themselves, too.
    pub templates: BTreeMap<String, ByteString>,
}

/// The releases that the gateway serves. Immutable; a changed file makes another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparkLines {
    /// The line of submissions for which nothing else selects one.
    default: SparkLine,
    /// Ordered by release; never empty.
    lines: Vec<SparkLine>,
}

/// The selection of a release, and where it was made.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    pub text: &'a str,
    pub by: Selector<'a>,
}

/// Where a release was selected.
#[derive(Debug, Clone, Copy)]
pub enum Selector<'a> {
    /// In the field `sparkVersion` of the request.
    Field,
    /// In a property of the request.
    Property,
    /// In a default of the operator, of this origin.
    Default(&'a str),
}

impl Selection<'_> {
    fn refusal(self, reason: &str) -> Refusal {
        match self.by {
            Selector::Field => Refusal::field("sparkVersion", reason),
            Selector::Property => Refusal::property(SPARK_VERSION, reason),
            Selector::Default(origin) => {
                Refusal::property(SPARK_VERSION, format!("{reason} (the version is a default of {origin})"))
            }
        }
    }
}

impl SparkLine {
    fn bare(version: SparkVersion) -> Self {
        let origin = format!("lines/{}", version.line());
        Self { version, origin, defaults: BTreeMap::new(), templates: BTreeMap::new() }
    }
}

impl SparkLines {
    /// Returns the lines of a gateway without a file: its own release.
    pub fn only(version: SparkVersion) -> Self {
        Self { default: SparkLine::bare(version), lines: vec![SparkLine::bare(version)] }
    }

    /// Returns the releases, in their order.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = SparkVersion> + ExactSizeIterator {
        self.lines.iter().map(|line| line.version)
    }

    /// Returns the release of submissions for which nothing else selects one.
    pub fn default_version(&self) -> SparkVersion {
        self.default.version
    }

    /// Returns the latest release.
    pub fn newest(&self) -> SparkVersion {
        self.versions().next_back().unwrap_or(self.default.version)
    }

    /// Returns the image of a release, if the operator's file has one.
    pub fn image(&self, version: SparkVersion) -> Option<&str> {
        let line = self.lines.iter().find(|line| line.version == version)?;
        line.defaults.get(IMAGE).map(String::as_str)
    }

    /// Returns the releases that a tenant may use.
    pub fn permitted<'a>(&'a self, tenant: &'a Tenant) -> impl Iterator<Item = SparkVersion> + 'a {
        self.versions().filter(|version| may_use(tenant, *version))
    }

    /// Returns the release of a tenant's submissions that select none; `None` if it isn't served, or the tenant may not use it.
    pub fn default_of(&self, tenant: &Tenant) -> Option<SparkVersion> {
        let named = tenant.defaults.get(SPARK_VERSION).or(tenant.default_spark_version.as_ref());
        let default = match named {
            Some(named) => self.named(named)?.version,
            None => self.default.version,
        };
        may_use(tenant, default).then_some(default)
    }

    /// Returns the lines in the order in which a command line is tried with them: the selected one, the default, the others.
    pub fn in_order_of_likelihood(&self, selected: Option<&str>) -> Vec<SparkVersion> {
        let selected = selected.and_then(|text| self.named(text)).map(|line| line.version);
        let mut versions: Vec<_> = selected.into_iter().chain([self.default.version]).collect();
        for version in self.versions().rev() {
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions
    }

    /// Returns the releases with their defaults.
    pub fn defaults(&self) -> impl Iterator<Item = (SparkVersion, &BTreeMap<String, String>)> {
        self.lines.iter().map(|line| (line.version, &line.defaults))
    }

    /// Returns the defaults of a served release.
    pub fn defaults_of(&self, version: &str) -> Option<&BTreeMap<String, String>> {
        self.lines.iter().find(|line| line.version.to_string() == version).map(|line| &line.defaults)
    }

    /// Returns the line of a submission.
    ///
    /// # Errors
    /// A [`Refusal`] with the releases that there are: the selected one isn't served, or the tenant may not use it.
    pub fn select(&self, selection: Option<Selection<'_>>, tenant: Option<&Tenant>) -> Result<&SparkLine, Refusal> {
        let line = match selection {
            Some(selection) => self.named(selection.text).ok_or_else(|| {
                let (text, served) = (selection.text, listed(self.versions()));
                selection.refusal(&format!("`{text}` is not a Spark version of this gateway, which serves {served}"))
            })?,
            None => &self.default,
        };
        match tenant {
            Some(tenant) if !may_use(tenant, line.version) => {
                let permitted = listed(self.permitted(tenant));
                let reason =
                    format!("tenant {} may not use Spark {}; it may use {permitted}", tenant.name, line.version);
                let default = Selection { text: "", by: Selector::Default("the gateway") };
                Err(selection.unwrap_or(default).refusal(&reason))
            }
            _ => Ok(line),
        }
    }

    fn named(&self, text: &str) -> Option<&SparkLine> {
        self.lines.iter().find(|line| line.version.is_named(text))
    }
}

fn may_use(tenant: &Tenant, version: SparkVersion) -> bool {
    tenant.spark_versions.is_empty() || tenant.spark_versions.iter().any(|text| version.is_named(text))
}

fn listed(versions: impl Iterator<Item = SparkVersion>) -> String {
    let versions: Vec<_> = versions.map(|version| version.to_string()).collect();
    match versions.as_slice() {
        [] => "none".to_owned(),
        [only] => format!("{only} only"),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns whether a property selects something for the gateway, which the defaults of a line can't do.
fn is_selector(key: &str) -> bool {
    key.strip_prefix(OWN).is_some_and(|name| matches!(name, "sparkVersion" | "defaults"))
}
