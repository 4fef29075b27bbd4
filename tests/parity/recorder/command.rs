//! A case as a run of spark-submit: its arguments, variables and files.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::case::{Case, MASTER, SPARK_SUBMIT};

/// Added to every run, because the recorder has no pod to wait for.
pub(crate) const NO_WAIT: &str = "spark.kubernetes.submission.waitAppCompletion";
/// An empty zip archive.
const EMPTY_JAR: &str = "base64:UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA==";

/// The input of one run. Equal inputs give equal answers.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Command {
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// By path in the submitter's directory.
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) hadoop: bool,
}

impl Command {
    pub(crate) fn of(case: &Case) -> Self {
        let request = &case.request;
        let mut properties = request.spark_properties.clone();
        let mut env = BTreeMap::new();
        for (name, value) in &request.environment_variables {
            match name.as_str() {
                "SPARK_USER" | "PYSPARK_PYTHON" | "PYSPARK_DRIVER_PYTHON" | "SPARK_LOCAL_DIRS" => {
                    env.insert(name.clone(), value.clone());
                }
                "SPARK_LOCAL_IP" | "SPARK_LOCAL_HOSTNAME" => {}
                _ => {
                    let key = format!("spark.kubernetes.driverEnv.{name}");
                    properties.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
        properties.insert(NO_WAIT.to_owned(), "false".to_owned());

        let mut args = vec!["--deploy-mode".to_owned(), "cluster".to_owned()];
        if let Some(user) = &request.proxy_user {
            args.extend(["--proxy-user".to_owned(), user.clone()]);
        }
        for (key, value) in &properties {
            args.extend(["--conf".to_owned(), format!("{key}={value}")]);
        }
        if request.main_class != SPARK_SUBMIT {
            if !request.main_class.is_empty() {
                args.extend(["--class".to_owned(), request.main_class.clone()]);
            }
            if !request.app_resource.is_empty() {
                args.push(request.app_resource.clone());
            }
        }
        args.extend(request.app_args.iter().cloned());
        Self { files: files(case, &args), args, env, hadoop: case.submitter.hadoop_conf.is_some() }
    }

    /// Returns the request to the oracle, for an API server at `address`.
    pub(crate) fn question(&self, address: &str, here: &str) -> Value {
        let replace = |text: &String| text.replace(MASTER, address);
        let mut env = self.env.clone();
        if self.hadoop {
            env.insert("HADOOP_CONF_DIR".into(), format!("{here}/hadoop"));
        }
        let files: BTreeMap<&String, String> = self.files.iter().map(|(path, text)| (path, replace(text))).collect();
        let args: Vec<String> = self.args.iter().map(replace).collect();
        json!({ "op": "submit", "args": args, "env": env, "files": files })
    }
}

fn files(case: &Case, args: &[String]) -> BTreeMap<String, String> {
    let submitter = &case.submitter;
    let mut files = submitter.files.clone();
    files.extend(submitter.conf_dir.iter().map(|(name, text)| (format!("conf/{name}"), text.clone())));
    let hadoop = submitter.hadoop_conf.iter().flatten();
    files.extend(hadoop.map(|(name, text)| (format!("hadoop/{name}"), text.clone())));
    if !case.defaults.is_empty() {
        files.insert("conf/spark-defaults.conf".into(), case.defaults_file());
    }
    files.extend(packages(args));
    files
}

/// Returns the files of packages in the submitter's local Maven repository: spark-submit resolves packages, although
/// the driver does it again.
fn packages(args: &[String]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let after_option = at > 0 && args[at - 1] == "--packages";
        let list = ["--packages=", "spark.jars.packages=", "--conf=spark.jars.packages="]
            .iter()
            .find_map(|prefix| arg.strip_prefix(prefix))
            .or_else(|| after_option.then_some(arg));
        for coordinate in list.into_iter().flat_map(|list| list.split(',')) {
            if let [group, name, version] = coordinate.split(':').map(str::trim).collect::<Vec<_>>()[..] {
                let base = format!("home/.m2/repository/{}/{name}/{version}/{name}-{version}", group.replace('.', "/"));
                let pom = format!(
                    "<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId>\
                     <artifactId>{name}</artifactId><version>{version}</version></project>"
                );
                files.extend([(format!("{base}.pom"), pom), (format!("{base}.jar"), EMPTY_JAR.to_owned())]);
            }
        }
    }
    files
}
