//! The application's primary resource: a jar, a Python file, an R file, or nothing (`spark-internal`).

use super::uris;
use crate::{conf::SparkConf, refusal::Refusal, request::CreateSubmissionRequest};

const FIELD: &str = "appResource";
/// Spark's name for an application that is part of Spark itself.
const INTERNAL: &str = "spark-internal";
const JARS: &str = "spark.jars";

/// Spark's `MainAppResource`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MainAppResource {
    /// A jar, or none for a class that is already in the image.
    Java(Option<String>),
    Python(String),
    R(String),
}

/// Returns the resource of the request.
pub(crate) fn given(request: &CreateSubmissionRequest) -> Result<&str, Refusal> {
    match request.app_resource.as_str() {
        "" => Err(Refusal::field(
            FIELD,
            "Missing application resource. Must specify a primary resource (JAR or Python or R file)",
        )),
        resource => Ok(resource),
    }
}

/// Returns whether the resource is one of Spark's reserved names, not a URI.
pub(super) fn is_internal(resource: &str) -> bool {
    resource == INTERNAL || is_shell(resource)
}

fn is_shell(resource: &str) -> bool {
    matches!(resource, "spark-shell" | "pyspark-shell" | "sparkr-shell" | "connect-shell")
}

impl MainAppResource {
    pub(super) fn from_request(request: &CreateSubmissionRequest) -> Result<Self, Refusal> {
        let resource = given(request)?;
        if resource == INTERNAL {
            return Ok(Self::Java(None));
        }
        if is_shell(resource) {
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

    /// Returns the class that the driver starts: Spark's runner for Python and R, the request's own class for a jar.
    pub(super) fn main_class(&self, requested: &str) -> Result<String, Refusal> {
        match self {
            Self::Python(_) => Ok("org.apache.spark.deploy.PythonRunner".to_owned()),
            Self::R(_) => Ok("org.apache.spark.deploy.RRunner".to_owned()),
            // spark-submit would read the jar's manifest, but the gateway can't open the jar.
            Self::Java(jar) if requested.is_empty() => {
                let error = match jar.as_deref() {
                    None => format!("File {INTERNAL} does not exist"),
                    Some(jar) if jar.starts_with("local:") => "No FileSystem for scheme \"local\"".to_owned(),
                    Some(_) => "the gateway can't open the jar".to_owned(),
                };
                let reason = format!(
                    "Failed to get main class in JAR with error '{error}'.  Please specify one with --class. (Outside a \
                     command line: as mainClass. The gateway doesn't open the jar.)"
                );
                Err(Refusal::field("mainClass", reason))
            }
            Self::Java(_) => Ok(requested.to_owned()),
        }
    }

    /// Completes `spark.jars`: a JVM application's own jar is the last entry, and the key is set even when the list is empty.
    /// REST clients of a standalone master have already added the jar.
    ///
    /// # Errors
    /// The request has jars for an R application: Spark searches each for R packages, and can't open one that isn't a local
    /// file.
    pub(super) fn complete_jars(&self, conf: &mut SparkConf) -> Result<(), Refusal> {
        let jar = match self {
            Self::Java(jar) => jar,
            Self::R(_) if !conf.list(JARS).is_empty() => {
                let reason = "URI scheme is not \"file\": Spark takes no jars from elsewhere for an R application.";
                return Err(Refusal::property(JARS, reason));
            }
            Self::Python(_) | Self::R(_) => return Ok(()),
        };
        let mut jars = conf.list(JARS);
        jars.extend(jar.clone().filter(|jar| !jars.contains(jar)));
        conf.set(JARS, jars.join(","));
        Ok(())
    }

    /// Returns the value of `spark.kubernetes.resource.type`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Java(_) => "java",
            Self::Python(_) => "python",
            Self::R(_) => "r",
        }
    }

    /// Returns the resource as an argument of the driver's command.
    pub(crate) fn argument(&self) -> &str {
        match self {
            Self::Java(resource) => resource.as_deref().unwrap_or(INTERNAL),
            Self::Python(resource) | Self::R(resource) => resource,
        }
    }
}
