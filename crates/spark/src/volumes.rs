//! `spark.kubernetes.{driver,executor}.volumes.<type>.<name>.*`: the volumes that a driver or an executor mounts
//! (`KubernetesVolumeUtils`).

mod options;

use std::collections::{BTreeMap, BTreeSet};

use super::{conf::SparkConf, refusal::Refusal, version::SparkVersion};
use options::VolumeOptions;

pub(crate) const DRIVER_PREFIX: &str = "spark.kubernetes.driver.volumes.";
const EXECUTOR_PREFIX: &str = "spark.kubernetes.executor.volumes.";

/// Spark's `KubernetesVolumeSpec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VolumeSpec {
    pub(crate) name: String,
    pub(crate) mount_path: String,
    /// Empty for the whole volume.
    pub(crate) sub_path: String,
    /// `None` before 4.0, which introduced it.
    pub(crate) sub_path_expr: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) source: VolumeSource,
}

/// The source of a volume, by the `<type>` of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VolumeSource {
    HostPath { path: String, kind: String },
    EmptyDir { medium: String, size_limit: Option<String> },
    Nfs { server: String, path: String },
    PersistentVolumeClaim(Claim),
}

/// A claim to mount, and how to create it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its name, in which `OnDemand` stands for a name that Spark generates.
    pub(crate) name: String,
    pub(crate) storage_class: Option<String>,
    pub(crate) size_limit: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// Reads the volumes under a prefix, sorted by type and name. Spark's order is that of a hash set, so nothing can depend on it.
///
/// # Errors
/// A [`Refusal`] with Spark's message, for the key that is missing or invalid.
pub(crate) fn parse(conf: &SparkConf, version: SparkVersion, prefix: &str) -> Result<Vec<VolumeSpec>, Refusal> {
    let entries = conf.with_prefix(prefix);
    // The first two parts of a key name its volume. As with Java's `split`, empty parts at the end are dropped.
    let volumes: BTreeSet<(&str, &str)> = entries
        .keys()
        .filter_map(|key| {
            let mut parts = key.trim_end_matches('.').split('.');
            Some((parts.next()?, parts.next()?))
        })
        .collect();
    let options = |(kind, name)| VolumeOptions::new(&entries, version, prefix, kind, name);
    volumes.into_iter().map(|volume| spec(&options(volume))).collect()
}

/// Checks the executors' volumes. Spark reads them before it creates a driver, so that errors in them are reported at once.
///
/// # Errors
/// As for [`parse`].
pub(crate) fn check_executors(conf: &SparkConf, version: SparkVersion) -> Result<(), Refusal> {
    parse(conf, version, EXECUTOR_PREFIX).map(drop)
}

fn spec(options: &VolumeOptions<'_>) -> Result<VolumeSpec, Refusal> {
    let knows_expressions = options.version >= SparkVersion::V4_0;
    let (sub_path, sub_path_expr) = (options.get("mount.subPath"), options.get("mount.subPathExpr"));
    if knows_expressions && sub_path.is_some() && sub_path_expr.is_some() {
        let keys = ["mount.subPath", "mount.subPathExpr"].map(|key| options.short_key(key)).join(", ");
        return Err(
            options.refusal("mount.subPathExpr", format!("These config options are mutually exclusive: {keys}"))
        );
    }
    let no_path = || {
        let key = options.short_key("mount.path");
        options.refusal("mount.path", format!("key not found: {key}. It says where the volume is mounted."))
    };
    let mount_path = options.get("mount.path").ok_or_else(no_path)?;
    Ok(VolumeSpec {
        name: options.name.to_owned(),
        mount_path: mount_path.to_owned(),
        sub_path: sub_path.unwrap_or_default().to_owned(),
        sub_path_expr: knows_expressions.then(|| sub_path_expr.unwrap_or_default().to_owned()),
        read_only: options.boolean("mount.readOnly")?,
        source: source(options)?,
    })
}

fn source(options: &VolumeOptions<'_>) -> Result<VolumeSource, Refusal> {
    let later_than_3_5 = options.version >= SparkVersion::V4_0;
    match options.kind {
        "hostPath" => Ok(VolumeSource::HostPath {
            path: options.required("options.path")?,
            kind: options.get("options.type").filter(|_| later_than_3_5).unwrap_or_default().to_owned(),
        }),
        "emptyDir" => Ok(VolumeSource::EmptyDir {
            medium: options.get("options.medium").unwrap_or_default().to_owned(),
            size_limit: options.size_limit()?,
        }),
        "nfs" => Ok(VolumeSource::Nfs {
            path: options.required("options.path")?,
            server: options.required("options.server")?,
        }),
        "persistentVolumeClaim" => Ok(VolumeSource::PersistentVolumeClaim(Claim {
            name: options.required("options.claimName")?,
            storage_class: options.get("options.storageClass").map(str::to_owned),
            size_limit: options.size_limit()?,
            labels: if later_than_3_5 { options.family("label.") } else { BTreeMap::new() },
            annotations: if later_than_3_5 { options.family("annotation.") } else { BTreeMap::new() },
        })),
        kind => Err(options.refusal(
            "mount.path",
            format!(
                "Kubernetes Volume type `{kind}` is not supported. The types are hostPath, emptyDir, nfs and \
                 persistentVolumeClaim."
            ),
        )),
    }
}
