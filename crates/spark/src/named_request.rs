//! A request whose application has a name.

use super::{
    refusal::Refusal,
    request::CreateSubmissionRequest,
    submit::{command_line::expand_command_line, resource},
    version::SparkVersion,
};

/// A request whose command line is parsed and whose application is named: what names and objects are made from.
#[derive(Debug, Clone)]
pub struct NamedRequest {
    pub request: CreateSubmissionRequest,
    /// `spark.app.name`, else the main class, else the file name of the resource.
    pub app_name: String,
    /// The gateway itself starts a server of Spark Connect, whose class spark-submit refuses in cluster mode.
    pub is_connect_server: bool,
}

impl NamedRequest {
    /// Parses the command line of a request, if it has one, and names its application.
    ///
    /// # Errors
    /// A [`Refusal`] if the request names neither an application nor a resource after which to name it, or is a command line
    /// that this release can't parse.
    pub fn new(request: CreateSubmissionRequest, version: SparkVersion) -> Result<Self, Refusal> {
        let request = expand_command_line(request, version)?;
        let app_name = app_name(&request)?;
        Ok(Self { request, app_name, is_connect_server: false })
    }
}

fn app_name(request: &CreateSubmissionRequest) -> Result<String, Refusal> {
    if let Some(name) = request.spark_properties.get("spark.app.name") {
        return Ok(name.clone());
    }
    if !request.main_class.is_empty() {
        return Ok(request.main_class.clone());
    }
    let resource = resource::given(request)?.trim_end_matches('/');
    Ok(resource.rsplit('/').next().unwrap_or(resource).to_owned())
}
