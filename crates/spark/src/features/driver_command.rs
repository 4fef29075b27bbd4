//! `DriverCommandFeatureStep`: the arguments of the image's entrypoint.

use super::{FeatureStep, env};
use crate::{
    driver::{DriverConf, SparkPod},
    submit::MainAppResource,
};

const PROPERTIES_PATH: &str = "/opt/spark/conf/spark.properties";

pub(super) struct DriverCommand<'a> {
    conf: &'a DriverConf<'a>,
}

impl<'a> DriverCommand<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Self {
        Self { conf }
    }

    fn arguments(&self) -> Vec<String> {
        let app = &self.conf.app;
        let mut arguments = vec!["driver"];
        if let Some(user) = &app.proxy_user {
            arguments.extend(["--proxy-user", user]);
        }
        arguments.extend(["--properties-file", PROPERTIES_PATH, "--class", &app.main_class, app.resource.argument()]);
        arguments.extend(app.args.iter().map(String::as_str));
        arguments.into_iter().map(str::to_owned).collect()
    }

    /// Returns the Python executables of the executors' workers and of the driver.
    fn python(&self) -> [(&'static str, Option<&str>); 2] {
        let variables = &self.conf.app.submitter_env;
        let python = self.conf.get("spark.pyspark.python");
        let driver = self.conf.get("spark.pyspark.driver.python").or(python);
        let pyspark_python = variables.pyspark_python.as_deref();
        [
            ("PYSPARK_PYTHON", python.or(pyspark_python)),
            ("PYSPARK_DRIVER_PYTHON", driver.or(variables.pyspark_driver_python.as_deref()).or(pyspark_python)),
        ]
    }
}

impl FeatureStep for DriverCommand<'_> {
    fn configure_pod(&self, pod: &mut SparkPod) {
        pod.container.args.get_or_insert_default().extend(self.arguments());
        if let MainAppResource::Python(_) = self.conf.app.resource {
            let variables = self.python().into_iter().filter_map(|(name, value)| Some(env(name, value?)));
            pod.container.env.get_or_insert_default().extend(variables);
        }
    }

    fn additional_properties(&self) -> Vec<(String, String)> {
        vec![("spark.kubernetes.resource.type".to_owned(), self.conf.app.resource.kind().to_owned())]
    }
}
