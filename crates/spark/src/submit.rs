//! Does what `spark-submit` does before its Kubernetes client runs (`SparkSubmitArguments`, `SparkSubmit`): turns a request
//! into an application with a complete configuration.

pub(crate) mod command_line;
mod environment;
mod master;
pub(crate) mod resource;
mod uris;
mod validate;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    conf::SparkConf, context::SubmitContext, named_request::NamedRequest, refusal::Refusal,
    request::CreateSubmissionRequest,
};
pub use command_line::{expand_command_line, has_command_line, options_without_effect};
pub(crate) use environment::SubmitterEnv;
pub(crate) use resource::MainAppResource;

/// One application, ready for the feature steps.
#[derive(Debug, Clone)]
pub(crate) struct Application {
    pub(crate) conf: SparkConf,
    pub(crate) name: String,
    pub(crate) main_class: String,
    pub(crate) resource: MainAppResource,
    pub(crate) args: Vec<String>,
    pub(crate) proxy_user: Option<String>,
    /// Variables that steps read as the submitter's environment.
    pub(crate) submitter_env: SubmitterEnv,
    /// Variables of the driver container, by name.
    pub(crate) driver_env: BTreeMap<String, String>,
    /// Pod templates that came with the request itself: YAML or JSON text, or an object.
    pub(crate) driver_pod_template: Option<Value>,
    pub(crate) executor_pod_template: Option<Value>,
}

/// Resolves a request as `spark-submit --deploy-mode cluster` would resolve its command line.
///
/// # Errors
/// A [`Refusal`] with Spark's message where an argument is invalid, or where a file would have to be uploaded.
pub(crate) fn prepare(named: &NamedRequest, context: &SubmitContext<'_>) -> Result<Application, Refusal> {
    let NamedRequest { request, app_name: name, is_connect_server } = named;
    let version = context.version;
    validate::no_nul(request)?;
    let mut conf = resolve_properties(request, context)?;
    validate::no_heap_option(&conf)?;
    validate::not_remote(&conf)?;
    validate::sizes(&conf, version)?;
    validate::namespace(&conf)?;
    if !is_connect_server {
        validate::runs_in_cluster("mainClass", &request.main_class, version)?;
    }
    validate::packages(&conf)?;
    validate::submission_client(&conf)?;
    let resource = MainAppResource::from_request(request)?;
    let main_class = resource.main_class(&request.main_class)?;
    let proxy_user = request.proxy_user.clone();
    validate::identity(&conf, proxy_user.as_deref())?;

    uris::resolve_all(&mut conf)?;
    resource.complete_jars(&mut conf)?;
    conf.set("spark.app.name", name.as_str());
    if request.driver_pod_template.is_some() {
        // The request's own template wins, and the driver's properties don't mention another one.
        conf.remove("spark.kubernetes.driver.podTemplateFile");
    }
    conf.set_if_missing("spark.app.submitTime", || context.submitted_at.timestamp_millis().to_string());
    let (submitter_env, driver_env) = environment::split(request, &conf);
    Ok(Application {
        conf,
        name: name.clone(),
        main_class,
        resource,
        args: request.app_args.clone(),
        proxy_user,
        submitter_env,
        driver_env,
        driver_pod_template: request.driver_pod_template.clone(),
        executor_pod_template: request.executor_pod_template.clone(),
    })
}

/// Returns the `spark.` properties with the keys that cluster mode determines.
fn resolve_properties(request: &CreateSubmissionRequest, context: &SubmitContext<'_>) -> Result<SparkConf, Refusal> {
    // Spark warns about other keys and drops them.
    let mut conf = SparkConf::new(
        request
            .spark_properties
            .iter()
            .filter(|(key, _)| key.starts_with("spark."))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        context.version,
    );
    for (key, value) in context.properties {
        conf.set(key, value.as_str());
    }
    let master = master::kubernetes(conf.get("spark.master"), context.version)?;
    conf.set("spark.master", master);
    conf.set("spark.submit.deployMode", "cluster");
    conf.remove("spark.driver.host");
    // `--keytab` and `--principal` fall back to their old keys, from YARN.
    for (key, old) in
        [("spark.kerberos.keytab", "spark.yarn.keytab"), ("spark.kerberos.principal", "spark.yarn.principal")]
    {
        if let Some(value) = conf.get(old).map(str::to_owned) {
            conf.set_if_missing(key, || value);
        }
    }
    Ok(conf)
}
