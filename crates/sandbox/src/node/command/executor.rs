//! `executor`: the JVM that the image's entrypoint starts, built from the environment variables that the driver sets on the
//! pod.

use std::path::{Path, PathBuf};

use super::{Launch, Site};
use crate::{node::env::Env, node::fault::Fault};

const BACKEND: &str = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend";

/// The backend's options, each with the environment variable that has its value.
const OPTIONS: [(&str, &str); 6] = [
    ("--driver-url", "SPARK_DRIVER_URL"),
    ("--executor-id", "SPARK_EXECUTOR_ID"),
    ("--cores", "SPARK_EXECUTOR_CORES"),
    ("--app-id", "SPARK_APPLICATION_ID"),
    ("--resourceProfileId", "SPARK_RESOURCE_PROFILE_ID"),
    ("--podName", "SPARK_EXECUTOR_POD_NAME"),
];

/// Returns the command line of an executor.
///
/// # Errors
/// A variable of the contract is missing.
pub(in crate::node) fn executor(site: &Site<'_>, env: Env) -> Result<Launch, Fault> {
    let Site { spark, address, dir } = *site;
    let var = |name: &str| {
        env.get(name).ok_or_else(|| {
            Fault::refused("CreateContainerConfigError", format!("an executor needs {name}, which its pod doesn't set"))
        })
    };
    let memory = var("SPARK_EXECUTOR_MEMORY")?;
    let mut args = java_options(&env);
    args.extend([format!("-Xms{memory}"), format!("-Xmx{memory}")]);
    args.extend(["-cp".to_owned(), class_path(&env, &spark.home, dir), BACKEND.to_owned()]);
    for (option, name) in OPTIONS {
        args.extend([option.to_owned(), var(name)?.to_owned()]);
    }
    args.extend(["--hostname", "--bind-address"].into_iter().flat_map(|o| [o.to_owned(), address.to_string()]));
    let java = env.get("JAVA_HOME").map_or_else(|| PathBuf::from("java"), |home| Path::new(home).join("bin/java"));
    Ok(Launch { program: java, args, env, dir: dir.to_owned() })
}

/// Returns the values of `SPARK_JAVA_OPT_<n>` in the order of n.
fn java_options(env: &Env) -> Vec<String> {
    let numbered = |(name, value): (&str, &str)| {
        Some((name.strip_prefix("SPARK_JAVA_OPT_")?.parse::<u32>().ok()?, value.to_owned()))
    };
    let mut options: Vec<(u32, String)> = env.iter().filter_map(numbered).collect();
    options.sort();
    options.into_iter().map(|(_, value)| value).collect()
}

fn class_path(env: &Env, home: &Path, dir: &Path) -> String {
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let set = |name: &str| env.get(name).map(str::to_owned);
    let parts = [
        set("SPARK_CONF_DIR").or_else(|| Some(path(home.join("conf")))),
        set("HADOOP_CONF_DIR"),
        set("SPARK_CLASSPATH"),
        Some(path(home.join("jars/*"))),
        set("SPARK_EXTRA_CLASSPATH"),
        set("SPARK_DIST_CLASSPATH"),
        Some(path(dir.to_owned())),
    ];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::node::spark_home::Spark;

    fn env() -> Env {
        let mut env = Env::default();
        for (name, value) in [
            ("SPARK_JAVA_OPT_10", "-Dten"),
            ("SPARK_JAVA_OPT_2", "-Dtwo"),
            ("SPARK_EXECUTOR_MEMORY", "1g"),
            ("SPARK_DRIVER_URL", "spark://x"),
            ("SPARK_EXECUTOR_ID", "1"),
            ("SPARK_EXECUTOR_CORES", "2"),
            ("SPARK_APPLICATION_ID", "app"),
            ("SPARK_RESOURCE_PROFILE_ID", "0"),
            ("SPARK_EXECUTOR_POD_NAME", "pod"),
            ("SPARK_CLASSPATH", "/extra.jar"),
            ("JAVA_HOME", "/java"),
        ] {
            env.set(name, value);
        }
        env
    }

    fn launch(env: Env) -> Result<Launch, Fault> {
        let spark = Spark { home: "/spark".into(), python: "python3".into() };
        executor(&Site { spark: &spark, address: Ipv4Addr::new(127, 1, 2, 3), dir: Path::new("/w") }, env)
    }

    #[test]
    fn an_executor_runs_sparks_backend() {
        let launch = launch(env()).unwrap();
        let expected = "-Dtwo -Dten -Xms1g -Xmx1g -cp /spark/conf:/extra.jar:/spark/jars/*:/w \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --driver-url spark://x --executor-id 1 --cores 2 \
            --app-id app --resourceProfileId 0 --podName pod --hostname 127.1.2.3 --bind-address 127.1.2.3";
        assert_eq!(launch.args.join(" "), expected);
        assert_eq!(launch.program, Path::new("/java/bin/java"));
    }

    #[test]
    fn a_missing_variable_is_named() {
        let mut without = Env::default();
        env().iter().filter(|(name, _)| *name != "SPARK_DRIVER_URL").for_each(|(n, v)| without.set(n, v));
        let fault = launch(without).unwrap_err();
        assert!(fault.to_string().contains("SPARK_DRIVER_URL"), "{fault}");
    }
}
