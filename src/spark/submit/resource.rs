//! The application's primary resource: a jar, a Python file, an R file, or nothing (`spark-internal`).

use super::uris;
use crate::spark::{CreateSubmissionRequest, Refusal, conf::SparkConf};

const FIELD: &str = "appResource";
/// Spark's word for an application that is part of Spark itself.
const INTERNAL: &str = "spark-internal";

/// Spark's `MainAppResource`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MainAppResource {
    /// A jar, or none for a class that the image has already.
    Java(Option<String>),
    Python(String),
    R(String),
}

/// The resource as the request gives it.
pub(super) fn given(request: &CreateSubmissionRequest) -> Result<&str, Refusal> {
    match request.app_resource.as_str() {
        "" => Err(Refusal::field(FIELD, "Must specify a primary resource (JAR or Python or R file)")),
        resource => Ok(resource),
    }
}

impl MainAppResource {
    pub(super) fn of_request(request: &CreateSubmissionRequest) -> Result<Self, Refusal> {
        let resource = given(request)?;
        if resource == INTERNAL {
            return Ok(Self::Java(None));
        }
        if let "spark-shell" | "pyspark-shell" | "sparkr-shell" | "connect-shell" = resource {
            return Err(Refusal::field(FIELD, "Cluster deploy mode is not applicable to Spark shells."));
        }
        uris::remote(FIELD, resource)?;
        let resource = resource.to_owned();
        Ok(if resource.ends_with(".py") {
            Self::Python(resource)
        } else if resource.ends_with(".R") || resource.ends_with(".r") {
            Self::R(resource)
        } else {
            Self::Java(Some(resource))
        })
    }

    /// The class that the driver starts: Spark's runner for Python and R, the request's own for a jar.
    pub(super) fn main_class(&self, requested: &str) -> Result<String, Refusal> {
        match self {
            Self::Python(_) => Ok("org.apache.spark.deploy.PythonRunner".to_owned()),
            Self::R(_) => Ok("org.apache.spark.deploy.RRunner".to_owned()),
            // spark-submit would read the jar's manifest. The jar can't be opened from here.
            Self::Java(_) if requested.is_empty() => Err(Refusal::field(
                "mainClass",
                "Main class is missing, and the jar can't be opened from here. Please specify the class to run.",
            )),
            Self::Java(_) => Ok(requested.to_owned()),
        }
    }

    /// Completes `spark.jars`: a JVM application's own jar is the last entry, and the key is there even when it is empty.
    /// A REST client of a standalone master has put the jar in already.
    pub(super) fn complete_jars(&self, conf: &mut SparkConf) {
        let Self::Java(jar) = self else { return };
        let mut jars = conf.list("spark.jars");
        jars.extend(jar.clone().filter(|jar| !jars.contains(jar)));
        conf.set("spark.jars", jars.join(","));
    }

    /// The word of `spark.kubernetes.resource.type`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Java(_) => "java",
            Self::Python(_) => "python",
            Self::R(_) => "r",
        }
    }

    /// What the driver's command names.
    pub(crate) fn argument(&self) -> &str {
        match self {
            Self::Java(resource) => resource.as_deref().unwrap_or(INTERNAL),
            Self::Python(resource) | Self::R(resource) => resource,
        }
    }
}
