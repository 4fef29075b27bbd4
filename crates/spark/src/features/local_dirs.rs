//! `LocalDirsFeatureStep`: scratch space for shuffle and spill files.

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Volume, VolumeMount};

use super::{FeatureStep, env};
use crate::{
    driver::{DriverConf, SparkPod},
    refusal::Refusal,
};

/// Prefix of volumes that the user provides as scratch space.
const VOLUME_PREFIX: &str = "spark-local-dir-";

/// Maximum number of directories of one pod. Two characters of a request add kilobytes to a pod here, so there has to be a
/// limit.
const MAX_DIRECTORIES: usize = 10_000;

pub(super) struct LocalDirs {
    /// The directories in the given order. Spark shuffles them to spread the load; the order has no meaning, so it is kept
    /// here.
    directories: Vec<String>,
    in_memory: bool,
}

impl LocalDirs {
    pub(super) fn new(conf: &DriverConf<'_>) -> Result<Self, Refusal> {
        let variable = conf.app.submitter_env.spark_local_dirs.as_deref();
        let configured = variable.or_else(|| conf.get("spark.local.dir")).map(str::to_owned);
        let list = configured.unwrap_or_else(|| format!("/var/data/spark-{}", conf.names.local_dir));
        // Java's `split` drops empty strings at the end, so a list of only commas is empty.
        let directories: Vec<String> = match list.trim_end_matches(',') {
            "" if !list.is_empty() => Vec::new(),
            list => list.split(',').map(str::to_owned).collect(),
        };
        if directories.len() > MAX_DIRECTORIES {
            let reason = format!("{} directories are too many; the maximum is {MAX_DIRECTORIES}", directories.len());
            return Err(match variable {
                Some(_) => Refusal::field("environmentVariables[\"SPARK_LOCAL_DIRS\"]", reason),
                None => Refusal::property("spark.local.dir", reason),
            });
        }
        Ok(Self { directories, in_memory: conf.boolean("spark.kubernetes.local.dirs.tmpfs")?.unwrap_or(false) })
    }

    fn mount_own(&self, pod: &mut SparkPod) -> String {
        for (index, directory) in self.directories.iter().enumerate() {
            let name = format!("{VOLUME_PREFIX}{}", index + 1);
            let medium = self.in_memory.then(|| "Memory".to_owned());
            let source = EmptyDirVolumeSource { medium, ..Default::default() };
            let volume = Volume { name: name.clone(), empty_dir: Some(source), ..Default::default() };
            let mount = VolumeMount { name, mount_path: directory.clone(), ..Default::default() };
            pod.mount(volume, mount);
        }
        self.directories.join(",")
    }
}

impl FeatureStep for LocalDirs {
    fn configure_pod(&self, pod: &mut SparkPod) {
        let mounts = pod.container.volume_mounts.iter().flatten();
        let given = mounts.filter(|mount| mount.name.starts_with(VOLUME_PREFIX));
        let given: Vec<String> = given.map(|mount| mount.mount_path.clone()).collect();
        let directories = if given.is_empty() { self.mount_own(pod) } else { given.join(",") };
        pod.add_env(env("SPARK_LOCAL_DIRS", &directories));
    }
}
