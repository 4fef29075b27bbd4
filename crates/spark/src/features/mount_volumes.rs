//! `MountVolumesFeatureStep`: the volumes that the configuration names, and the claims that it asks for.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        EmptyDirVolumeSource, HostPathVolumeSource, NFSVolumeSource, PersistentVolumeClaim, PersistentVolumeClaimSpec,
        PersistentVolumeClaimVolumeSource, Volume, VolumeMount, VolumeResourceRequirements,
    },
    apimachinery::pkg::api::resource::Quantity,
};

use super::{FeatureStep, Made, object_meta, quantity};
use crate::{
    driver::{DriverConf, Object, SparkPod},
    refusal::Refusal,
    version::SparkVersion,
    volumes::{self, Claim, DRIVER_PREFIX, VolumeSource, VolumeSpec},
};

/// The part of a claim's name that is replaced by a name that Spark generates.
const ON_DEMAND: &str = "OnDemand";

pub(super) struct MountVolumes<'a> {
    conf: &'a DriverConf<'a>,
    mounted: Vec<(Volume, VolumeMount)>,
    claims: Vec<PersistentVolumeClaim>,
}

impl<'a> MountVolumes<'a> {
    pub(super) fn make(conf: &'a DriverConf<'a>) -> Result<Made<'a>, Refusal> {
        let access_mode = access_mode(conf)?;
        Ok(Box::new(move || {
            let mut step = Self { conf, mounted: Vec::new(), claims: Vec::new() };
            let specs = volumes::parse(conf, conf.version, DRIVER_PREFIX)?;
            refuse_duplicates(&specs)?;
            for (index, spec) in specs.into_iter().enumerate() {
                step.add(index, spec, access_mode)?;
            }
            Ok(Box::new(step))
        }))
    }

    fn add(&mut self, index: usize, spec: VolumeSpec, access_mode: &str) -> Result<(), Refusal> {
        let mut volume = Volume { name: spec.name.clone(), ..Default::default() };
        let key = |kind: &str, option: &str| format!("{DRIVER_PREFIX}{kind}.{}.options.{option}", spec.name);
        match spec.source {
            VolumeSource::HostPath { path, kind } => {
                volume.host_path = Some(HostPathVolumeSource { path, type_: Some(kind) });
            }
            VolumeSource::EmptyDir { medium, size_limit } => {
                let size_limit = size_limit.map(|size| quantity(&key("emptyDir", "sizeLimit"), &size)).transpose()?;
                volume.empty_dir =
                    Some(EmptyDirVolumeSource { medium: Some(medium), size_limit, ..Default::default() });
            }
            VolumeSource::Nfs { server, path } => {
                volume.nfs = Some(NFSVolumeSource { server, path, read_only: None });
            }
            VolumeSource::PersistentVolumeClaim(claim) => {
                // Any unique number will do: Spark's is a position in a hash set.
                let own = format!("{}-driver-pvc-{index}", self.conf.names.resource_prefix);
                let claim_name = claim.name.replace(ON_DEMAND, &own);
                if let (Some(class), Some(size)) = (&claim.storage_class, &claim.size_limit) {
                    let size = quantity(&key("persistentVolumeClaim", "sizeLimit"), size)?;
                    let object = self.claim(&claim_name, class, size, access_mode, &claim);
                    self.claims.push(object);
                }
                let read_only = Some(spec.read_only);
                volume.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource { claim_name, read_only });
            }
        }
        let mount = VolumeMount {
            name: spec.name,
            mount_path: spec.mount_path,
            read_only: Some(spec.read_only),
            sub_path: Some(spec.sub_path),
            sub_path_expr: spec.sub_path_expr,
            ..Default::default()
        };
        self.mounted.push((volume, mount));
        Ok(())
    }

    /// Returns a claim of the driver. It is created whenever class and size are given, whatever its name is.
    fn claim(&self, name: &str, class: &str, size: Quantity, mode: &str, claim: &Claim) -> PersistentVolumeClaim {
        let mut metadata = object_meta(self.conf, name);
        let mut labels = claim.labels.clone();
        labels.extend(self.conf.app_selector());
        metadata.labels = Some(labels);
        metadata.annotations = Some(claim.annotations.clone()).filter(|annotations| !annotations.is_empty());
        let requests = BTreeMap::from([("storage".to_owned(), size)]);
        let spec = PersistentVolumeClaimSpec {
            storage_class_name: Some(class.to_owned()),
            access_modes: Some(vec![mode.to_owned()]),
            resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
            ..Default::default()
        };
        PersistentVolumeClaim { metadata, spec: Some(spec), status: None }
    }
}

impl FeatureStep for MountVolumes<'_> {
    fn configure_pod(&self, pod: &mut SparkPod) {
        self.mounted.iter().cloned().for_each(|(volume, mount)| pod.mount(volume, mount));
    }

    fn additional_resources(&self) -> Vec<Object> {
        self.claims.iter().cloned().map(Object::PersistentVolumeClaim).collect()
    }
}

/// Returns the access mode of claims that are created here: since 4.0 only one pod may use a claim, unless the older mode is
/// requested.
fn access_mode(conf: &DriverConf<'_>) -> Result<&'static str, Refusal> {
    let legacy = conf.boolean("spark.kubernetes.legacy.useReadWriteOnceAccessMode")?;
    Ok(match legacy.unwrap_or(conf.version < SparkVersion::V4_0) {
        true => "ReadWriteOnce",
        false => "ReadWriteOncePod",
    })
}

/// Refuses two volumes with the same mount path. The API server checks the mounts of other steps and of a template.
fn refuse_duplicates(specs: &[VolumeSpec]) -> Result<(), Refusal> {
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    specs.iter().for_each(|spec| *uses.entry(&spec.mount_path).or_default() += 1);
    let paths: Vec<String> = uses.iter().filter(|(_, uses)| **uses > 1).map(|(path, _)| format!("'{path}'")).collect();
    if paths.is_empty() {
        return Ok(());
    }
    Err(Refusal::property(DRIVER_PREFIX, format!("Found duplicated mountPath: {}", paths.join(", "))))
}
